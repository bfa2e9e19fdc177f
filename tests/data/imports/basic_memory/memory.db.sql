BEGIN TRANSACTION;
CREATE TABLE entity (id INTEGER PRIMARY KEY, title VARCHAR, note_type VARCHAR, entity_metadata JSON, permalink VARCHAR, file_path VARCHAR, project_id INTEGER, created_at DATETIME, tags_json TEXT GENERATED ALWAYS AS (json_extract(entity_metadata, '$.tags')) VIRTUAL);
CREATE INDEX idx_entity_tags_json ON entity (tags_json);
INSERT INTO "entity" VALUES(1,'Coffee','note','{}','coffee','coffee.md',1,'2026-03-16T09:00:00+00:00');
INSERT INTO "entity" VALUES(2,'Tea','note','{}','tea','tea.md',1,'2026-03-16T09:00:00+00:00');
CREATE TABLE note_content (entity_id INTEGER PRIMARY KEY, project_id INTEGER, external_id VARCHAR, file_path VARCHAR, markdown_content TEXT, db_version BIGINT);
INSERT INTO "note_content" VALUES(2,1,'x','tea.md','---
title: Tea
---

It steeps for --- at most --- three minutes.

- [method] Green tea at 70 degrees',1);
CREATE TABLE observation (id INTEGER PRIMARY KEY, entity_id INTEGER, content TEXT, category VARCHAR, context TEXT, tags JSON);
INSERT INTO "observation" VALUES(1,1,'Pour over is clearer','method','blind test','[]');
INSERT INTO "observation" VALUES(2,2,'Green tea at 70 degrees','method',NULL,'[]');
CREATE TABLE project (id INTEGER PRIMARY KEY, name VARCHAR, permalink VARCHAR, path VARCHAR);
INSERT INTO "project" VALUES(1,'main','main','/n');
CREATE TABLE relation (id INTEGER PRIMARY KEY, from_id INTEGER, to_id INTEGER, to_name VARCHAR, relation_type VARCHAR, context TEXT);
INSERT INTO "relation" VALUES(1,1,NULL,'Chocolate','pairs_with',NULL);
COMMIT;
