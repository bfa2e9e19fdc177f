BEGIN TRANSACTION;
CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT);
INSERT INTO "history" VALUES('1','m1',NULL,'Likes tea','ADD','2026-03-16T09:00:00+00:00',NULL,0,NULL,'user');
INSERT INTO "history" VALUES('2','m2',NULL,'Lives in Rome','ADD','2026-03-16T09:00:00+00:00',NULL,0,NULL,'user');
INSERT INTO "history" VALUES('3','m1','Likes tea','Likes coffee','UPDATE','2026-03-16T09:00:00+00:00','2026-03-16T09:00:00+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('4','m2','Lives in Rome',NULL,'DELETE','2026-03-16T09:00:00+00:00','2026-03-16T09:00:00+00:00',1,NULL,'user');
COMMIT;
