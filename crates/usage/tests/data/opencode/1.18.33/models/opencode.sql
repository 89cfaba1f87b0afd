PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE `workspace` (
          `id` text PRIMARY KEY,
          `type` text NOT NULL,
          `name` text DEFAULT '' NOT NULL,
          `branch` text,
          `directory` text,
          `extra` text,
          `project_id` text NOT NULL,
          `time_used` integer NOT NULL,
          CONSTRAINT `fk_workspace_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `data_migration` (
          `name` text PRIMARY KEY,
          `time_completed` integer NOT NULL
        );
CREATE TABLE `account_state` (
          `id` integer PRIMARY KEY,
          `active_account_id` text,
          `active_org_id` text,
          CONSTRAINT `fk_account_state_active_account_id_account_id_fk` FOREIGN KEY (`active_account_id`) REFERENCES `account`(`id`) ON DELETE SET NULL
        );
CREATE TABLE `account` (
          `id` text PRIMARY KEY,
          `email` text NOT NULL,
          `url` text NOT NULL,
          `access_token` text NOT NULL,
          `refresh_token` text NOT NULL,
          `token_expiry` integer,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL
        );
CREATE TABLE `control_account` (
          `email` text NOT NULL,
          `url` text NOT NULL,
          `access_token` text NOT NULL,
          `refresh_token` text NOT NULL,
          `token_expiry` integer,
          `active` integer NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          CONSTRAINT `control_account_pk` PRIMARY KEY(`email`, `url`)
        );
CREATE TABLE `credential` (
          `id` text PRIMARY KEY,
          `integration_id` text,
          `label` text NOT NULL,
          `value` text NOT NULL,
          `connector_id` text,
          `method_id` text,
          `active` integer,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL
        );
CREATE TABLE `event_sequence` (
          `aggregate_id` text PRIMARY KEY,
          `seq` integer NOT NULL,
          `owner_id` text
        );
INSERT INTO event_sequence VALUES('ses_dfb563d81ffeMDQ8MsTaIFIJ2P',64,NULL);
CREATE TABLE `event` (
          `id` text PRIMARY KEY,
          `aggregate_id` text NOT NULL,
          `seq` integer NOT NULL,
          `type` text NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_event_aggregate_id_event_sequence_aggregate_id_fk` FOREIGN KEY (`aggregate_id`) REFERENCES `event_sequence`(`aggregate_id`) ON DELETE CASCADE
        );
INSERT INTO event VALUES('evt_204a9c27f0016ONZLXHVm0cmYw','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',0,'session.created.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:09:23.966Z","version":"1.18.33","time":{"created":1795374563966,"updated":1795374563966},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9c2d10011OLasAuO2OSTs0','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:09:23.966Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374564046},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9c2da0018hODP5pHagR8GO','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',2,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9c2ce001Vrpqz0X3XH3WIF","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"user","time":{"created":1795374564046},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a9c6650014VjkVZk5Pb72S4','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',3,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c2d8001aS5GqwMTfpdEKh","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c2ce001Vrpqz0X3XH3WIF","type":"text","text":"\"#scn:two go\""},"time":1795374564965}');
INSERT INTO event VALUES('evt_204a9c66a001kabwm7aewB9cw7','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',4,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:09:23.966Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374564969},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9c677001HNP5WWpiO1tWqR','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',5,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9c677001Yj4yVqaCNn4FKA","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374564983},"parentID":"msg_204a9c2ce001Vrpqz0X3XH3WIF","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a9c6a6001HLbbgz6wMuCXD0','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',6,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:09:23.966Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374565029},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9c6ac001pvPk9ehonWCZbS','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',7,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9c2ce001Vrpqz0X3XH3WIF","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"user","time":{"created":1795374564046},"summary":{"diffs":[]},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a9c73f001thNBy0IqqOOfcX','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',8,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374565029},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9c9bd0010D7vDviGLuZ12K','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',9,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c9bd0010HhVb8Knl9e3Nv","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"step-start"},"time":1795374565821}');
INSERT INTO event VALUES('evt_204a9c9c1001O1jQeZ7rneeORM','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',10,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c9c1001fNQUhVYlZj25cE","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"reasoning","text":"","time":{"start":1795374565825}},"time":1795374565825}');
INSERT INTO event VALUES('evt_204a9c9d10010ZLSyGK63hcO7r','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',11,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c9c1001fNQUhVYlZj25cE","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"reasoning","text":"Two.","metadata":{"anthropic":{"signature":"c2ln"}},"time":{"start":1795374565825,"end":1795374565841}},"time":1795374565841}');
INSERT INTO event VALUES('evt_204a9c9d4001xSyqB33o4ITKAI','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',12,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c9d40010dqTH5pSs8nGsE","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"text","text":"","time":{"start":1795374565844}},"time":1795374565844}');
INSERT INTO event VALUES('evt_204a9c9e3001rGltoAGhD4M6oO','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',13,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c9d40010dqTH5pSs8nGsE","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"text","text":"Two calls.","time":{"start":1795374565844,"end":1795374565859}},"time":1795374565859}');
INSERT INTO event VALUES('evt_204a9c9e70010BZrNl9hNtdfD2','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',14,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c9e70014GL8tJW3HOIhCx","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"pending","input":{},"raw":""}},"time":1795374565863}');
INSERT INTO event VALUES('evt_204a9ca0100181jhqtr2uLxBCU','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',15,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c9e70014GL8tJW3HOIhCx","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"running","input":{"command":"echo one","description":"run a command"},"time":{"start":1795374565889}}},"time":1795374565889}');
INSERT INTO event VALUES('evt_204a9ca05001onGHD8baWl7Wpp','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',16,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9ca05001JUrGYzPM2oIVoV","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"pending","input":{},"raw":""}},"time":1795374565893}');
INSERT INTO event VALUES('evt_204a9ca14001NOvXF2U97Fr6vu','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',17,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9ca05001JUrGYzPM2oIVoV","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"running","input":{"command":"echo two","description":"run a command"},"time":{"start":1795374565908}}},"time":1795374565908}');
INSERT INTO event VALUES('evt_204a9ca5f001cQs3fb0FXCTxlr','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',18,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c9e70014GL8tJW3HOIhCx","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"running","input":{"command":"echo one","description":"run a command"},"metadata":{"output":""},"time":{"start":1795374565889}}},"time":1795374565983}');
INSERT INTO event VALUES('evt_204a9ca66001qORSKeZ3eU2Y8S','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',19,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9ca05001JUrGYzPM2oIVoV","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"running","input":{"command":"echo two","description":"run a command"},"metadata":{"output":""},"time":{"start":1795374565908}}},"time":1795374565990}');
INSERT INTO event VALUES('evt_204a9ca84001HaM6O16KIrm4Ie','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',20,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c9e70014GL8tJW3HOIhCx","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"running","input":{"command":"echo one","description":"run a command"},"metadata":{"output":"one\n"},"time":{"start":1795374565889}}},"time":1795374566020}');
INSERT INTO event VALUES('evt_204a9ca8d001CgoHTybzsmSHbV','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',21,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9c9e70014GL8tJW3HOIhCx","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"completed","input":{"command":"echo one","description":"run a command"},"output":"one\n","title":"echo one","metadata":{"output":"one\n","exit":0,"truncated":false},"time":{"start":1795374565889,"end":1795374566029}}},"time":1795374566029}');
INSERT INTO event VALUES('evt_204a9ca91001oUOxssUSob1Pa2','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',22,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9ca05001JUrGYzPM2oIVoV","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"running","input":{"command":"echo two","description":"run a command"},"metadata":{"output":"two\n"},"time":{"start":1795374565908}}},"time":1795374566033}');
INSERT INTO event VALUES('evt_204a9ca95001BJMy7AmXm45LLG','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',23,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9ca05001JUrGYzPM2oIVoV","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"completed","input":{"command":"echo two","description":"run a command"},"output":"two\n","title":"echo two","metadata":{"output":"two\n","exit":0,"truncated":false},"time":{"start":1795374565908,"end":1795374566037}}},"time":1795374566037}');
INSERT INTO event VALUES('evt_204a9ca9a001Jq4sUTFKpXFS9b','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',24,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9ca9a001D6K0CVC3MVJsBN","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9c677001Yj4yVqaCNn4FKA","type":"step-finish","reason":"tool-calls","cost":0.0131157,"tokens":{"total":4614,"input":212,"output":646,"reasoning":0,"cache":{"read":3274,"write":482}}},"time":1795374566042}');
INSERT INTO event VALUES('evt_204a9ca9d0016eHzzKQDfX77Tw','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',25,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9c677001Yj4yVqaCNn4FKA","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374564983},"parentID":"msg_204a9c2ce001Vrpqz0X3XH3WIF","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0131157,"tokens":{"total":4614,"input":212,"output":646,"reasoning":0,"cache":{"read":3274,"write":482}},"finish":"tool-calls"}}');
INSERT INTO event VALUES('evt_204a9caa1001SGSjYhHSlXeMAW','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',26,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9c677001Yj4yVqaCNn4FKA","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374564983,"completed":1795374566049},"parentID":"msg_204a9c2ce001Vrpqz0X3XH3WIF","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0131157,"tokens":{"total":4614,"input":212,"output":646,"reasoning":0,"cache":{"read":3274,"write":482}},"finish":"tool-calls"}}');
INSERT INTO event VALUES('evt_204a9caa6001x6gVylWUCCuv2X','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',27,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9caa5001RHXIXXfYT4YIvh","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374566054},"parentID":"msg_204a9c2ce001Vrpqz0X3XH3WIF","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a9caba0019ao2Lx6FZq17T9','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',28,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.0131157,"tokens":{"input":212,"output":646,"reasoning":0,"cache":{"read":3274,"write":482}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374566072},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9cabe0019VftDNAy0B4Exp','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',29,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9c2ce001Vrpqz0X3XH3WIF","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"user","time":{"created":1795374564046},"summary":{"diffs":[]},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a9cae4001Da7WjSGNNuOI2t','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',30,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9cae4001MHUm0iAcW3Tg14","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9caa5001RHXIXXfYT4YIvh","type":"step-start"},"time":1795374566116}');
INSERT INTO event VALUES('evt_204a9cae7001qJd5uR0fpKlf4l','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',31,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9cae7001Ke5xSSaaHZw25Q","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9caa5001RHXIXXfYT4YIvh","type":"text","text":"","time":{"start":1795374566119}},"time":1795374566119}');
INSERT INTO event VALUES('evt_204a9caf30017dF5YHZdTfCfGQ','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',32,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9cae7001Ke5xSSaaHZw25Q","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9caa5001RHXIXXfYT4YIvh","type":"text","text":"Both ran.","time":{"start":1795374566119,"end":1795374566131}},"time":1795374566131}');
INSERT INTO event VALUES('evt_204a9caf7001N8N1cYvhoqaNKC','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',33,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9caf7001bbHn6iv1caza9y","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9caa5001RHXIXXfYT4YIvh","type":"step-finish","reason":"stop","cost":0.01316955,"tokens":{"total":4626,"input":213,"output":649,"reasoning":0,"cache":{"read":3281,"write":483}}},"time":1795374566135}');
INSERT INTO event VALUES('evt_204a9cafa001DwPvqdMpHqB4do','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',34,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9caa5001RHXIXXfYT4YIvh","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374566054},"parentID":"msg_204a9c2ce001Vrpqz0X3XH3WIF","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.01316955,"tokens":{"total":4626,"input":213,"output":649,"reasoning":0,"cache":{"read":3281,"write":483}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a9cafd0013eZXPIs0HYHAjA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',35,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9caa5001RHXIXXfYT4YIvh","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374566054,"completed":1795374566141},"parentID":"msg_204a9c2ce001Vrpqz0X3XH3WIF","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.01316955,"tokens":{"total":4626,"input":213,"output":649,"reasoning":0,"cache":{"read":3281,"write":483}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a9cb15001RboKdPUi1e5tj3','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',36,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.02628525,"tokens":{"input":425,"output":1295,"reasoning":0,"cache":{"read":6555,"write":965}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374566164},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9d195001GT7q6bHsZWB2MN','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',37,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.02628525,"tokens":{"input":425,"output":1295,"reasoning":0,"cache":{"read":6555,"write":965}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocko","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374567826},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9d1a1001hSo3Q9YpOOW022','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',38,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9d192001nmj0EhuB2kQJHA","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"user","time":{"created":1795374567826},"agent":"build","model":{"providerID":"mocko","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a9d4fb001KvhkNM9run3mM1','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',39,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9d1a0001VHgd98zrd0cnG9","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9d192001nmj0EhuB2kQJHA","type":"text","text":"\"#scn:text again\""},"time":1795374568699}');
INSERT INTO event VALUES('evt_204a9d5010019bHS57o90xsced','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',40,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.02628525,"tokens":{"input":425,"output":1295,"reasoning":0,"cache":{"read":6555,"write":965}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocko","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374568704},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9d516001fy6MJpfWl6AHoE','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',41,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9d516001TuX9ITNeKRU3kA","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374568726},"parentID":"msg_204a9d192001nmj0EhuB2kQJHA","modelID":"m1","providerID":"mocko","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a9d54d001tgtKRh81UHC757','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',42,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.02628525,"tokens":{"input":425,"output":1295,"reasoning":0,"cache":{"read":6555,"write":965}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocko","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374568780},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9d553001U6Rv4BU463vKvm','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',43,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9d192001nmj0EhuB2kQJHA","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"user","time":{"created":1795374567826},"summary":{"diffs":[]},"agent":"build","model":{"providerID":"mocko","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a9d87b001SHpEKMFSVJWC3X','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',44,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9d87b001fXaG3RSW0ORTcQ","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9d516001TuX9ITNeKRU3kA","type":"step-start"},"time":1795374569595}');
INSERT INTO event VALUES('evt_204a9d880001XyqaPYYweOlosM','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',45,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9d8800014l5HodrqsByD9h","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9d516001TuX9ITNeKRU3kA","type":"text","text":"","time":{"start":1795374569600}},"time":1795374569600}');
INSERT INTO event VALUES('evt_204a9d914001kUYPB1JQXT4R3X','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',46,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9d8800014l5HodrqsByD9h","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9d516001TuX9ITNeKRU3kA","type":"text","text":"Hello from the mock: naïve café ☃ 你好，世界 🚀👨‍👩‍👧 line1\nline2\t\"quoted\" \\ done.","time":{"start":1795374569600,"end":1795374569748}},"time":1795374569748}');
INSERT INTO event VALUES('evt_204a9d91c0011VAzPyrg3HHgnh','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',47,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9d91c001blLYwW4XNlChcq","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9d516001TuX9ITNeKRU3kA","type":"step-finish","reason":"stop","cost":0.0128604,"tokens":{"total":4638,"input":698,"output":448,"reasoning":204,"cache":{"read":3288,"write":0}}},"time":1795374569756}');
INSERT INTO event VALUES('evt_204a9d920001qxaqj6NhCQoDy6','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',48,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9d516001TuX9ITNeKRU3kA","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374568726},"parentID":"msg_204a9d192001nmj0EhuB2kQJHA","modelID":"m1","providerID":"mocko","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0128604,"tokens":{"total":4638,"input":698,"output":448,"reasoning":204,"cache":{"read":3288,"write":0}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a9d927001NP1rpclHPQDZbz','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',49,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9d516001TuX9ITNeKRU3kA","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374568726,"completed":1795374569766},"parentID":"msg_204a9d192001nmj0EhuB2kQJHA","modelID":"m1","providerID":"mocko","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0128604,"tokens":{"total":4638,"input":698,"output":448,"reasoning":204,"cache":{"read":3288,"write":0}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a9d944001zg6daSv45MPXHu','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',50,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.03914565,"tokens":{"input":1123,"output":1743,"reasoning":204,"cache":{"read":9843,"write":965}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocko","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374569795},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9e0a40010T7Ff5HFTnopYt','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',51,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.03914565,"tokens":{"input":1123,"output":1743,"reasoning":204,"cache":{"read":9843,"write":965}},"title":"Mock title","agent":"build","model":{"id":"m2","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374571680},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9e0b10010Fj9NdQc4rtyPj','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',52,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9e0a0001UfJ3sXjfIosGEL","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"user","time":{"created":1795374571680},"agent":"build","model":{"providerID":"mocka","modelID":"m2"}}}');
INSERT INTO event VALUES('evt_204a9e3c5001sBAlLV2uCcbOz3','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',53,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9e0b0001qcml52wTXAxBHp","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9e0a0001UfJ3sXjfIosGEL","type":"text","text":"\"#scn:text third\""},"time":1795374572484}');
INSERT INTO event VALUES('evt_204a9e3ca001dXfmzNGb6jIdMb','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',54,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.03914565,"tokens":{"input":1123,"output":1743,"reasoning":204,"cache":{"read":9843,"write":965}},"title":"Mock title","agent":"build","model":{"id":"m2","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374572489},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9e3d80017y8De7QtaQwFfk','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',55,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9e3d8001mfnTmqVXn0G6l0","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374572504},"parentID":"msg_204a9e0a0001UfJ3sXjfIosGEL","modelID":"m2","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a9e405001gGyRM0NfhX01cD','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',56,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.03914565,"tokens":{"input":1123,"output":1743,"reasoning":204,"cache":{"read":9843,"write":965}},"title":"Mock title","agent":"build","model":{"id":"m2","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374572547},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9e40a001eCHBaqKIQqdl5m','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',57,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9e0a0001UfJ3sXjfIosGEL","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"user","time":{"created":1795374571680},"summary":{"diffs":[]},"agent":"build","model":{"providerID":"mocka","modelID":"m2"}}}');
INSERT INTO event VALUES('evt_204a9e6c00014tWL6Lq1Y5qDFl','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',58,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9e6bf001F27a4h7OS3IZb0","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9e3d8001mfnTmqVXn0G6l0","type":"step-start"},"time":1795374573247}');
INSERT INTO event VALUES('evt_204a9e6c4001lcwkyiPSAaKKEI','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',59,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9e6c4001j5nBcnDzfE2kJq","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9e3d8001mfnTmqVXn0G6l0","type":"text","text":"","time":{"start":1795374573252}},"time":1795374573252}');
INSERT INTO event VALUES('evt_204a9e753001OU2H7ybsg0RY6U','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',60,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9e6c4001j5nBcnDzfE2kJq","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9e3d8001mfnTmqVXn0G6l0","type":"text","text":"Hello from the mock: naïve café ☃ 你好，世界 🚀👨‍👩‍👧 line1\nline2\t\"quoted\" \\ done.","time":{"start":1795374573252,"end":1795374573395}},"time":1795374573395}');
INSERT INTO event VALUES('evt_204a9e761001bSnBHC6RQNDELI','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',61,'message.part.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","part":{"id":"prt_204a9e760001cSUYkIJaK7PSAM","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","messageID":"msg_204a9e3d8001mfnTmqVXn0G6l0","type":"step-finish","reason":"stop","cost":0,"tokens":{"total":4650,"input":215,"output":655,"reasoning":0,"cache":{"read":3295,"write":485}}},"time":1795374573409}');
INSERT INTO event VALUES('evt_204a9e767001CuS4LHgYw858FC','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',62,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9e3d8001mfnTmqVXn0G6l0","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374572504},"parentID":"msg_204a9e0a0001UfJ3sXjfIosGEL","modelID":"m2","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"total":4650,"input":215,"output":655,"reasoning":0,"cache":{"read":3295,"write":485}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a9e773001c0Cb1FrCq232qN','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',63,'message.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"msg_204a9e3d8001mfnTmqVXn0G6l0","sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","role":"assistant","time":{"created":1795374572504,"completed":1795374573427},"parentID":"msg_204a9e0a0001UfJ3sXjfIosGEL","modelID":"m2","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"total":4650,"input":215,"output":655,"reasoning":0,"cache":{"read":3295,"write":485}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a9e7f7001L2YBZlJ8JXoPKU','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',64,'session.updated.1','{"sessionID":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","info":{"id":"ses_dfb563d81ffeMDQ8MsTaIFIJ2P","slug":"quick-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.03914565,"tokens":{"input":1338,"output":2398,"reasoning":204,"cache":{"read":13138,"write":1450}},"title":"Mock title","agent":"build","model":{"id":"m2","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374563966,"updated":1795374573558},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
CREATE TABLE `permission` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `action` text NOT NULL,
          `resource` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          CONSTRAINT `fk_permission_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `project_directory` (
          `project_id` text NOT NULL,
          `directory` text NOT NULL,
          `type` text,
          `strategy` text,
          `time_created` integer NOT NULL,
          CONSTRAINT `project_directory_pk` PRIMARY KEY(`project_id`, `directory`),
          CONSTRAINT `fk_project_directory_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `project` (
          `id` text PRIMARY KEY,
          `worktree` text NOT NULL,
          `vcs` text,
          `name` text,
          `icon_url` text,
          `icon_url_override` text,
          `icon_color` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_initialized` integer,
          `sandboxes` text NOT NULL,
          `commands` text
        );
INSERT INTO project VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795374563282,1795374571200,NULL,'[]',NULL);
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
INSERT INTO message VALUES('msg_204a9c2ce001Vrpqz0X3XH3WIF','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374564046,1795374566078,'{"role":"user","time":{"created":1795374564046},"agent":"build","model":{"providerID":"mocka","modelID":"m1"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_204a9c677001Yj4yVqaCNn4FKA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374564983,1795374566050,'{"parentID":"msg_204a9c2ce001Vrpqz0X3XH3WIF","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0131157,"tokens":{"total":4614,"input":212,"output":646,"reasoning":0,"cache":{"write":482,"read":3274}},"modelID":"m1","providerID":"mocka","time":{"created":1795374564983,"completed":1795374566049},"finish":"tool-calls"}');
INSERT INTO message VALUES('msg_204a9caa5001RHXIXXfYT4YIvh','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374566054,1795374566142,'{"parentID":"msg_204a9c2ce001Vrpqz0X3XH3WIF","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.01316955,"tokens":{"total":4626,"input":213,"output":649,"reasoning":0,"cache":{"write":483,"read":3281}},"modelID":"m1","providerID":"mocka","time":{"created":1795374566054,"completed":1795374566141},"finish":"stop"}');
INSERT INTO message VALUES('msg_204a9d192001nmj0EhuB2kQJHA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374567826,1795374568791,'{"role":"user","time":{"created":1795374567826},"agent":"build","model":{"providerID":"mocko","modelID":"m1"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_204a9d516001TuX9ITNeKRU3kA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374568726,1795374569768,'{"parentID":"msg_204a9d192001nmj0EhuB2kQJHA","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0128604,"tokens":{"total":4638,"input":698,"output":448,"reasoning":204,"cache":{"write":0,"read":3288}},"modelID":"m1","providerID":"mocko","time":{"created":1795374568726,"completed":1795374569766},"finish":"stop"}');
INSERT INTO message VALUES('msg_204a9e0a0001UfJ3sXjfIosGEL','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374571680,1795374572555,'{"role":"user","time":{"created":1795374571680},"agent":"build","model":{"providerID":"mocka","modelID":"m2"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_204a9e3d8001mfnTmqVXn0G6l0','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374572504,1795374573429,'{"parentID":"msg_204a9e0a0001UfJ3sXjfIosGEL","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"total":4650,"input":215,"output":655,"reasoning":0,"cache":{"write":485,"read":3295}},"modelID":"m2","providerID":"mocka","time":{"created":1795374572504,"completed":1795374573427},"finish":"stop"}');
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO part VALUES('prt_204a9c2d8001aS5GqwMTfpdEKh','msg_204a9c2ce001Vrpqz0X3XH3WIF','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374564965,1795374564967,'{"type":"text","text":"\"#scn:two go\""}');
INSERT INTO part VALUES('prt_204a9c9bd0010HhVb8Knl9e3Nv','msg_204a9c677001Yj4yVqaCNn4FKA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374565821,1795374565823,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a9c9c1001fNQUhVYlZj25cE','msg_204a9c677001Yj4yVqaCNn4FKA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374565825,1795374565843,'{"type":"reasoning","text":"Two.","time":{"start":1795374565825,"end":1795374565841},"metadata":{"anthropic":{"signature":"c2ln"}}}');
INSERT INTO part VALUES('prt_204a9c9d40010dqTH5pSs8nGsE','msg_204a9c677001Yj4yVqaCNn4FKA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374565844,1795374565860,'{"type":"text","text":"Two calls.","time":{"start":1795374565844,"end":1795374565859}}');
INSERT INTO part VALUES('prt_204a9c9e70014GL8tJW3HOIhCx','msg_204a9c677001Yj4yVqaCNn4FKA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374565863,1795374566030,'{"type":"tool","tool":"bash","callID":"toolu_a","state":{"status":"completed","input":{"command":"echo one","description":"run a command"},"output":"one\n","metadata":{"output":"one\n","exit":0,"truncated":false},"title":"echo one","time":{"start":1795374565889,"end":1795374566029}}}');
INSERT INTO part VALUES('prt_204a9ca05001JUrGYzPM2oIVoV','msg_204a9c677001Yj4yVqaCNn4FKA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374565893,1795374566038,'{"type":"tool","tool":"bash","callID":"toolu_b","state":{"status":"completed","input":{"command":"echo two","description":"run a command"},"output":"two\n","metadata":{"output":"two\n","exit":0,"truncated":false},"title":"echo two","time":{"start":1795374565908,"end":1795374566037}}}');
INSERT INTO part VALUES('prt_204a9ca9a001D6K0CVC3MVJsBN','msg_204a9c677001Yj4yVqaCNn4FKA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374566042,1795374566043,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":4614,"input":212,"output":646,"reasoning":0,"cache":{"write":482,"read":3274}},"cost":0.0131157}');
INSERT INTO part VALUES('prt_204a9cae4001MHUm0iAcW3Tg14','msg_204a9caa5001RHXIXXfYT4YIvh','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374566116,1795374566118,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a9cae7001Ke5xSSaaHZw25Q','msg_204a9caa5001RHXIXXfYT4YIvh','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374566119,1795374566132,'{"type":"text","text":"Both ran.","time":{"start":1795374566119,"end":1795374566131}}');
INSERT INTO part VALUES('prt_204a9caf7001bbHn6iv1caza9y','msg_204a9caa5001RHXIXXfYT4YIvh','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374566135,1795374566137,'{"reason":"stop","type":"step-finish","tokens":{"total":4626,"input":213,"output":649,"reasoning":0,"cache":{"write":483,"read":3281}},"cost":0.01316955}');
INSERT INTO part VALUES('prt_204a9d1a0001VHgd98zrd0cnG9','msg_204a9d192001nmj0EhuB2kQJHA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374568699,1795374568702,'{"type":"text","text":"\"#scn:text again\""}');
INSERT INTO part VALUES('prt_204a9d87b001fXaG3RSW0ORTcQ','msg_204a9d516001TuX9ITNeKRU3kA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374569595,1795374569597,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a9d8800014l5HodrqsByD9h','msg_204a9d516001TuX9ITNeKRU3kA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374569600,1795374569750,'{"type":"text","text":"Hello from the mock: naïve café ☃ 你好，世界 🚀👨‍👩‍👧 line1\nline2\t\"quoted\" \\ done.","time":{"start":1795374569600,"end":1795374569748}}');
INSERT INTO part VALUES('prt_204a9d91c001blLYwW4XNlChcq','msg_204a9d516001TuX9ITNeKRU3kA','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374569756,1795374569758,'{"reason":"stop","type":"step-finish","tokens":{"total":4638,"input":698,"output":448,"reasoning":204,"cache":{"write":0,"read":3288}},"cost":0.0128604}');
INSERT INTO part VALUES('prt_204a9e0b0001qcml52wTXAxBHp','msg_204a9e0a0001UfJ3sXjfIosGEL','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374572484,1795374572487,'{"type":"text","text":"\"#scn:text third\""}');
INSERT INTO part VALUES('prt_204a9e6bf001F27a4h7OS3IZb0','msg_204a9e3d8001mfnTmqVXn0G6l0','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374573247,1795374573250,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a9e6c4001j5nBcnDzfE2kJq','msg_204a9e3d8001mfnTmqVXn0G6l0','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374573252,1795374573399,'{"type":"text","text":"Hello from the mock: naïve café ☃ 你好，世界 🚀👨‍👩‍👧 line1\nline2\t\"quoted\" \\ done.","time":{"start":1795374573252,"end":1795374573395}}');
INSERT INTO part VALUES('prt_204a9e760001cSUYkIJaK7PSAM','msg_204a9e3d8001mfnTmqVXn0G6l0','ses_dfb563d81ffeMDQ8MsTaIFIJ2P',1795374573409,1795374573411,'{"reason":"stop","type":"step-finish","tokens":{"total":4650,"input":215,"output":655,"reasoning":0,"cache":{"write":485,"read":3295}},"cost":0}');
CREATE TABLE `session_context_epoch` (
          `session_id` text PRIMARY KEY,
          `baseline` text NOT NULL,
          `snapshot` text NOT NULL,
          `baseline_seq` integer NOT NULL,
          CONSTRAINT `fk_session_context_epoch_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `session_input` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `prompt` text NOT NULL,
          `delivery` text NOT NULL,
          `admitted_seq` integer NOT NULL,
          `promoted_seq` integer,
          `time_created` integer NOT NULL,
          CONSTRAINT `fk_session_input_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `session_message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `type` text NOT NULL,
          `seq` integer NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_session_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
INSERT INTO session VALUES('ses_dfb563d81ffeMDQ8MsTaIFIJ2P','global',NULL,NULL,'quick-eagle','/tmp/box/ws','tmp/box/ws','Mock title','1.18.33',NULL,0,0,0,NULL,NULL,0.039145649999999997115,1338,2398,204,13138,1450,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m2","providerID":"mocka","variant":"default"}',1795374563966,1795374573558,NULL,NULL);
CREATE TABLE `todo` (
          `session_id` text NOT NULL,
          `content` text NOT NULL,
          `status` text NOT NULL,
          `priority` text NOT NULL,
          `position` integer NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          CONSTRAINT `todo_pk` PRIMARY KEY(`session_id`, `position`),
          CONSTRAINT `fk_todo_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `session_share` (
          `session_id` text PRIMARY KEY,
          `id` text NOT NULL,
          `secret` text NOT NULL,
          `url` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          CONSTRAINT `fk_session_share_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE TABLE IF NOT EXISTS "migration" (id TEXT PRIMARY KEY, time_completed INTEGER NOT NULL);
INSERT INTO migration VALUES('20260127222353_familiar_lady_ursula',1795374562987);
INSERT INTO migration VALUES('20260211171708_add_project_commands',1795374562988);
INSERT INTO migration VALUES('20260213144116_wakeful_the_professor',1795374562988);
INSERT INTO migration VALUES('20260225215848_workspace',1795374562988);
INSERT INTO migration VALUES('20260227213759_add_session_workspace_id',1795374562988);
INSERT INTO migration VALUES('20260228203230_blue_harpoon',1795374562988);
INSERT INTO migration VALUES('20260303231226_add_workspace_fields',1795374562988);
INSERT INTO migration VALUES('20260309230000_move_org_to_state',1795374562988);
INSERT INTO migration VALUES('20260312043431_session_message_cursor',1795374562988);
INSERT INTO migration VALUES('20260323234822_events',1795374562989);
INSERT INTO migration VALUES('20260410174513_workspace-name',1795374562989);
INSERT INTO migration VALUES('20260413175956_chief_energizer',1795374562989);
INSERT INTO migration VALUES('20260423070820_add_icon_url_override',1795374562989);
INSERT INTO migration VALUES('20260427172553_slow_nightmare',1795374562989);
INSERT INTO migration VALUES('20260428004200_add_session_path',1795374562989);
INSERT INTO migration VALUES('20260501142318_next_venus',1795374562989);
INSERT INTO migration VALUES('20260504145000_add_sync_owner',1795374562989);
INSERT INTO migration VALUES('20260507164347_add_workspace_time',1795374562989);
INSERT INTO migration VALUES('20260510033149_session_usage',1795374562990);
INSERT INTO migration VALUES('20260511000411_data_migration_state',1795374562990);
INSERT INTO migration VALUES('20260511173437_session-metadata',1795374562990);
INSERT INTO migration VALUES('20260601010001_normalize_storage_paths',1795374562990);
INSERT INTO migration VALUES('20260601202201_amazing_prowler',1795374562991);
INSERT INTO migration VALUES('20260602002951_lowly_union_jack',1795374562991);
INSERT INTO migration VALUES('20260602182828_add_project_directories',1795374562991);
INSERT INTO migration VALUES('20260603001617_session_message_projection_indexes',1795374562991);
INSERT INTO migration VALUES('20260603040000_session_message_projection_order',1795374562991);
INSERT INTO migration VALUES('20260603141458_session_input_inbox',1795374562991);
INSERT INTO migration VALUES('20260603160727_jittery_ezekiel_stane',1795374562991);
INSERT INTO migration VALUES('20260604172448_event_sourced_session_input',1795374562991);
INSERT INTO migration VALUES('20260605003541_add_session_context_snapshot',1795374562992);
INSERT INTO migration VALUES('20260605042240_add_context_epoch_agent',1795374562992);
INSERT INTO migration VALUES('20260611035744_credential',1795374562992);
INSERT INTO migration VALUES('20260611192811_lush_chimera',1795374562992);
INSERT INTO migration VALUES('20260612174303_project_dir_strategy',1795374562992);
INSERT INTO migration VALUES('20260622142730_simplify_session_context_epoch',1795374562992);
INSERT INTO migration VALUES('20260622170816_reset_v2_session_state',1795374562992);
INSERT INTO migration VALUES('20260622202450_simplify_session_input',1795374562993);
CREATE UNIQUE INDEX `event_aggregate_seq_idx` ON `event` (`aggregate_id`,`seq`);
CREATE INDEX `event_aggregate_type_seq_idx` ON `event` (`aggregate_id`,`type`,`seq`);
CREATE UNIQUE INDEX `permission_project_action_resource_idx` ON `permission` (`project_id`,`action`,`resource`);
CREATE INDEX `message_session_time_created_id_idx` ON `message` (`session_id`,`time_created`,`id`);
CREATE INDEX `part_message_id_id_idx` ON `part` (`message_id`,`id`);
CREATE INDEX `part_session_idx` ON `part` (`session_id`);
CREATE INDEX `session_input_session_pending_delivery_seq_idx` ON `session_input` (`session_id`,`promoted_seq`,`delivery`,`admitted_seq`);
CREATE UNIQUE INDEX `session_input_session_admitted_seq_idx` ON `session_input` (`session_id`,`admitted_seq`);
CREATE UNIQUE INDEX `session_input_session_promoted_seq_idx` ON `session_input` (`session_id`,`promoted_seq`);
CREATE UNIQUE INDEX `session_message_session_seq_idx` ON `session_message` (`session_id`,`seq`);
CREATE INDEX `session_message_session_type_seq_idx` ON `session_message` (`session_id`,`type`,`seq`);
CREATE INDEX `session_message_session_time_created_id_idx` ON `session_message` (`session_id`,`time_created`,`id`);
CREATE INDEX `session_message_time_created_idx` ON `session_message` (`time_created`);
CREATE INDEX `session_project_idx` ON `session` (`project_id`);
CREATE INDEX `session_workspace_idx` ON `session` (`workspace_id`);
CREATE INDEX `session_parent_idx` ON `session` (`parent_id`);
CREATE INDEX `todo_session_idx` ON `todo` (`session_id`);
COMMIT;
