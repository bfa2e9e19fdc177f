BEGIN TRANSACTION;
CREATE TABLE apps (id CHAR(32) PRIMARY KEY, owner_id CHAR(32), name VARCHAR);
INSERT INTO "apps" VALUES('a','u','cursor');
CREATE TABLE memories (id CHAR(32) PRIMARY KEY, user_id CHAR(32), app_id CHAR(32), content VARCHAR, vector VARCHAR, metadata JSON, state VARCHAR(8), created_at DATETIME, updated_at DATETIME, archived_at DATETIME, deleted_at DATETIME);
INSERT INTO "memories" VALUES('m1','u','a','Likes tea',NULL,'{}','active','2026-03-16 09:00:00.000000','2026-03-16 09:00:00.000000',NULL,NULL);
INSERT INTO "memories" VALUES('m2','u','a','Gone',NULL,'{}','deleted','2026-03-16 09:00:00.000000','2026-03-16 09:00:00.000000',NULL,'2026-03-16 09:00:00.000000');
CREATE TABLE users (id CHAR(32) PRIMARY KEY, user_id VARCHAR, name VARCHAR);
INSERT INTO "users" VALUES('u','ann','Ann');
COMMIT;
