BEGIN TRANSACTION;
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE NOT NULL, content TEXT NOT NULL, tags TEXT, memory_type TEXT, metadata TEXT, created_at REAL, updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT, deleted_at REAL, superseded_by TEXT);
INSERT INTO "memories" VALUES(1,'h1','Use tabs','style,code','note','{}',1773651600.0,0.0,'','',NULL,NULL);
INSERT INTO "memories" VALUES(2,'h2','Old','','note','{}',1773651600.0,0.0,'','',1773651600.0,NULL);
INSERT INTO "memories" VALUES(3,'h3',' ','','note','{}',1773651600.0,0.0,'','',NULL,NULL);
INSERT INTO "memories" VALUES(4,'h4','Use spaces','','note','{"superseded_by": "h1"}',1773651600.0,0.0,'','',NULL,'h1');
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('memories',4);
COMMIT;
