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
INSERT INTO event_sequence VALUES('ses_dfb568f09ffekz8grwKjJ5X3Hw',28,NULL);
INSERT INTO event_sequence VALUES('ses_dfb568677ffegb7F9xPaS2qwvW',36,NULL);
CREATE TABLE `event` (
          `id` text PRIMARY KEY,
          `aggregate_id` text NOT NULL,
          `seq` integer NOT NULL,
          `type` text NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_event_aggregate_id_event_sequence_aggregate_id_fk` FOREIGN KEY (`aggregate_id`) REFERENCES `event_sequence`(`aggregate_id`) ON DELETE CASCADE
        );
INSERT INTO event VALUES('evt_204a970f80015td8dcCBzMWccr','ses_dfb568f09ffekz8grwKjJ5X3Hw',0,'session.created.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"ses_dfb568f09ffekz8grwKjJ5X3Hw","slug":"stellar-rocket","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:09:03.094Z","version":"1.18.33","time":{"created":1795374543094,"updated":1795374543094},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9716800146672dfswQ1TQ0','ses_dfb568f09ffekz8grwKjJ5X3Hw',1,'session.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"ses_dfb568f09ffekz8grwKjJ5X3Hw","slug":"stellar-rocket","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:09:03.094Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374543094,"updated":1795374543206},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a971720018cDCHulZx4lX4B','ses_dfb568f09ffekz8grwKjJ5X3Hw',2,'message.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"msg_204a97165001RtBO7AMevXnpcS","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","role":"user","time":{"created":1795374543206},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a97651001sTRr7M5QskEAss','ses_dfb568f09ffekz8grwKjJ5X3Hw',3,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a97170001JIComLdXa42BJF","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97165001RtBO7AMevXnpcS","type":"text","text":"\"#scn:task go\""},"time":1795374544465}');
INSERT INTO event VALUES('evt_204a976570012gOOo66nq8fQwC','ses_dfb568f09ffekz8grwKjJ5X3Hw',4,'session.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"ses_dfb568f09ffekz8grwKjJ5X3Hw","slug":"stellar-rocket","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:09:03.094Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374543094,"updated":1795374544471},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a97668001KYaI4nsyx7Hwmo','ses_dfb568f09ffekz8grwKjJ5X3Hw',5,'message.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"msg_204a97668001QLh7H6s8l8Am6w","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","role":"assistant","time":{"created":1795374544488},"parentID":"msg_204a97165001RtBO7AMevXnpcS","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a976a60010rqtsPM1ANKr2h','ses_dfb568f09ffekz8grwKjJ5X3Hw',6,'session.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"ses_dfb568f09ffekz8grwKjJ5X3Hw","slug":"stellar-rocket","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:09:03.094Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374543094,"updated":1795374544549},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a976af001Rv78t1kN408pxV','ses_dfb568f09ffekz8grwKjJ5X3Hw',7,'message.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"msg_204a97165001RtBO7AMevXnpcS","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","role":"user","time":{"created":1795374543206},"summary":{"diffs":[]},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a9772b001HG8oUTaJa4ozfu','ses_dfb568f09ffekz8grwKjJ5X3Hw',8,'session.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"ses_dfb568f09ffekz8grwKjJ5X3Hw","slug":"stellar-rocket","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374543094,"updated":1795374544549},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9795b001Emlyb0GB4QSrWi','ses_dfb568f09ffekz8grwKjJ5X3Hw',9,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a9795b001a2kJ7uNyZD3jx4","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97668001QLh7H6s8l8Am6w","type":"step-start"},"time":1795374545243}');
INSERT INTO event VALUES('evt_204a9796d001KfgipwiZfgO2ln','ses_dfb568f09ffekz8grwKjJ5X3Hw',10,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a9796d001c3T2Yg0PN6ZDWv","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97668001QLh7H6s8l8Am6w","type":"text","text":"","time":{"start":1795374545261}},"time":1795374545261}');
INSERT INTO event VALUES('evt_204a97971001H0WzMCB8gxLO5K','ses_dfb568f09ffekz8grwKjJ5X3Hw',11,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a9796d001c3T2Yg0PN6ZDWv","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97668001QLh7H6s8l8Am6w","type":"text","text":"I hand it on.","time":{"start":1795374545261,"end":1795374545265}},"time":1795374545265}');
INSERT INTO event VALUES('evt_204a979740015L9T9RBrZ03cDv','ses_dfb568f09ffekz8grwKjJ5X3Hw',12,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a97974001kr1gu0nbvMNSAC","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97668001QLh7H6s8l8Am6w","type":"tool","callID":"toolu_k1","tool":"task","state":{"status":"pending","input":{},"raw":""}},"time":1795374545268}');
INSERT INTO event VALUES('evt_204a97988002I8wQRSq40VaPfs','ses_dfb568677ffegb7F9xPaS2qwvW',0,'session.created.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"ses_dfb568677ffegb7F9xPaS2qwvW","slug":"shiny-garden","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"sub job (@general subagent)","agent":"general","version":"1.18.33","time":{"created":1795374545288,"updated":1795374545288},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a97993001AYsKjlOtWrVNTA','ses_dfb568f09ffekz8grwKjJ5X3Hw',13,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a97974001kr1gu0nbvMNSAC","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97668001QLh7H6s8l8Am6w","type":"tool","callID":"toolu_k1","tool":"task","state":{"status":"running","input":{"description":"sub job","prompt":"#scn:two do the sub job","subagent_type":"general"},"title":"sub job","metadata":{"parentSessionId":"ses_dfb568f09ffekz8grwKjJ5X3Hw","sessionId":"ses_dfb568677ffegb7F9xPaS2qwvW","model":{"modelID":"m1","providerID":"mocka"}},"time":{"start":1795374545299}}},"time":1795374545299}');
INSERT INTO event VALUES('evt_204a979a5001ioKp0a56ozYyIK','ses_dfb568677ffegb7F9xPaS2qwvW',1,'session.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"ses_dfb568677ffegb7F9xPaS2qwvW","slug":"shiny-garden","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"sub job (@general subagent)","agent":"general","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374545288,"updated":1795374545314},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a979b5001XXZ9QPgS5wefjR','ses_dfb568677ffegb7F9xPaS2qwvW',2,'message.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"msg_204a979a1001nUwf4cteEzXhmy","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","role":"user","time":{"created":1795374545314},"agent":"general","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a979b80017SNcU9AyQaDt4p','ses_dfb568677ffegb7F9xPaS2qwvW',3,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a979b5001R4C6EbKVmpDxx4","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979a1001nUwf4cteEzXhmy","type":"text","text":"#scn:two do the sub job"},"time":1795374545336}');
INSERT INTO event VALUES('evt_204a979c7001kmANVG8hi5iPz0','ses_dfb568677ffegb7F9xPaS2qwvW',4,'session.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"ses_dfb568677ffegb7F9xPaS2qwvW","slug":"shiny-garden","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"sub job (@general subagent)","agent":"general","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374545288,"updated":1795374545350},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a979d60011wcpZ1NoGdz6k1','ses_dfb568f09ffekz8grwKjJ5X3Hw',14,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a97974001kr1gu0nbvMNSAC","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97668001QLh7H6s8l8Am6w","type":"tool","callID":"toolu_k1","tool":"task","state":{"status":"running","input":{"description":"sub job","prompt":"#scn:two do the sub job","subagent_type":"general"},"title":"sub job","metadata":{"parentSessionId":"ses_dfb568f09ffekz8grwKjJ5X3Hw","sessionId":"ses_dfb568677ffegb7F9xPaS2qwvW","model":{"modelID":"m1","providerID":"mocka"}},"time":{"start":1795374545299}}},"time":1795374545366}');
INSERT INTO event VALUES('evt_204a979e6001WgSafgCVn1XzsG','ses_dfb568677ffegb7F9xPaS2qwvW',5,'message.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"msg_204a979e6001fx02CugH9mSCY5","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","role":"assistant","time":{"created":1795374545382},"parentID":"msg_204a979a1001nUwf4cteEzXhmy","modelID":"m1","providerID":"mocka","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a97af50013qDM1NpooISynL','ses_dfb568677ffegb7F9xPaS2qwvW',6,'session.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"ses_dfb568677ffegb7F9xPaS2qwvW","slug":"shiny-garden","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"sub job (@general subagent)","agent":"general","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374545288,"updated":1795374545652},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a97af9001g8YVaWXGFiz1XC','ses_dfb568677ffegb7F9xPaS2qwvW',7,'message.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"msg_204a979a1001nUwf4cteEzXhmy","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","role":"user","time":{"created":1795374545314},"summary":{"diffs":[]},"agent":"general","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a97b29001hCub2v24su0qHV','ses_dfb568677ffegb7F9xPaS2qwvW',8,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b280016AEuOrKdOKv7hw","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"step-start"},"time":1795374545705}');
INSERT INTO event VALUES('evt_204a97b2c001X3JwJHwYh8517b','ses_dfb568677ffegb7F9xPaS2qwvW',9,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b2c0017KEAuz1Dp1pD25","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"reasoning","text":"","time":{"start":1795374545708}},"time":1795374545708}');
INSERT INTO event VALUES('evt_204a97b51001CjekGXC7cwb6rs','ses_dfb568677ffegb7F9xPaS2qwvW',10,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b2c0017KEAuz1Dp1pD25","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"reasoning","text":"Two.","metadata":{"anthropic":{"signature":"c2ln"}},"time":{"start":1795374545708,"end":1795374545745}},"time":1795374545745}');
INSERT INTO event VALUES('evt_204a97b53001WUDE6TnhCtmcDD','ses_dfb568677ffegb7F9xPaS2qwvW',11,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b53001h3ejU9YLCjyx6i","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"text","text":"","time":{"start":1795374545747}},"time":1795374545747}');
INSERT INTO event VALUES('evt_204a97b58001ob2ZgGBohtdLfl','ses_dfb568677ffegb7F9xPaS2qwvW',12,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b53001h3ejU9YLCjyx6i","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"text","text":"Two calls.","time":{"start":1795374545747,"end":1795374545752}},"time":1795374545752}');
INSERT INTO event VALUES('evt_204a97b5b001HFjDFDSJ6ddjJK','ses_dfb568677ffegb7F9xPaS2qwvW',13,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b5b001vztcjOftdz9EPf","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"pending","input":{},"raw":""}},"time":1795374545755}');
INSERT INTO event VALUES('evt_204a97b6d001TJyqtPGgZ0VqyC','ses_dfb568677ffegb7F9xPaS2qwvW',14,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b5b001vztcjOftdz9EPf","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"running","input":{"command":"echo one","description":"run a command"},"time":{"start":1795374545773}}},"time":1795374545773}');
INSERT INTO event VALUES('evt_204a97b70001CZ9bYPduUxpeuj','ses_dfb568677ffegb7F9xPaS2qwvW',15,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b70001bgL2sTk1j1HMoS","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"pending","input":{},"raw":""}},"time":1795374545776}');
INSERT INTO event VALUES('evt_204a97b84001dRmQXzgl34YESf','ses_dfb568677ffegb7F9xPaS2qwvW',16,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b70001bgL2sTk1j1HMoS","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"running","input":{"command":"echo two","description":"run a command"},"time":{"start":1795374545796}}},"time":1795374545796}');
INSERT INTO event VALUES('evt_204a97bf10016ATHXeF8ssvLWZ','ses_dfb568677ffegb7F9xPaS2qwvW',17,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b5b001vztcjOftdz9EPf","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"running","input":{"command":"echo one","description":"run a command"},"metadata":{"output":""},"time":{"start":1795374545773}}},"time":1795374545905}');
INSERT INTO event VALUES('evt_204a97bf7001T3ckzUy0M5Mbcr','ses_dfb568677ffegb7F9xPaS2qwvW',18,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b70001bgL2sTk1j1HMoS","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"running","input":{"command":"echo two","description":"run a command"},"metadata":{"output":""},"time":{"start":1795374545796}}},"time":1795374545911}');
INSERT INTO event VALUES('evt_204a97c18001zWgdo039pKyray','ses_dfb568677ffegb7F9xPaS2qwvW',19,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b5b001vztcjOftdz9EPf","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"running","input":{"command":"echo one","description":"run a command"},"metadata":{"output":"one\n"},"time":{"start":1795374545773}}},"time":1795374545943}');
INSERT INTO event VALUES('evt_204a97c1f001mqk1fQ9i5yYEI5','ses_dfb568677ffegb7F9xPaS2qwvW',20,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b5b001vztcjOftdz9EPf","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"completed","input":{"command":"echo one","description":"run a command"},"output":"one\n","title":"echo one","metadata":{"output":"one\n","exit":0,"truncated":false},"time":{"start":1795374545773,"end":1795374545951}}},"time":1795374545951}');
INSERT INTO event VALUES('evt_204a97c23001to2momvyUDAjB3','ses_dfb568677ffegb7F9xPaS2qwvW',21,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b70001bgL2sTk1j1HMoS","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"running","input":{"command":"echo two","description":"run a command"},"metadata":{"output":"two\n"},"time":{"start":1795374545796}}},"time":1795374545955}');
INSERT INTO event VALUES('evt_204a97c28001kJ6jedu7UGWCws','ses_dfb568677ffegb7F9xPaS2qwvW',22,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97b70001bgL2sTk1j1HMoS","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"completed","input":{"command":"echo two","description":"run a command"},"output":"two\n","title":"echo two","metadata":{"output":"two\n","exit":0,"truncated":false},"time":{"start":1795374545796,"end":1795374545959}}},"time":1795374545959}');
INSERT INTO event VALUES('evt_204a97c2c0014zj1u4Hk2SjwgC','ses_dfb568677ffegb7F9xPaS2qwvW',23,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97c2c0018LbCR0Jw448evw","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a979e6001fx02CugH9mSCY5","type":"step-finish","reason":"tool-calls","cost":0.01101555,"tokens":{"total":4146,"input":173,"output":529,"reasoning":0,"cache":{"read":3001,"write":443}}},"time":1795374545964}');
INSERT INTO event VALUES('evt_204a97c2e001O4Z4Z62po5V82a','ses_dfb568677ffegb7F9xPaS2qwvW',24,'message.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"msg_204a979e6001fx02CugH9mSCY5","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","role":"assistant","time":{"created":1795374545382},"parentID":"msg_204a979a1001nUwf4cteEzXhmy","modelID":"m1","providerID":"mocka","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.01101555,"tokens":{"total":4146,"input":173,"output":529,"reasoning":0,"cache":{"read":3001,"write":443}},"finish":"tool-calls"}}');
INSERT INTO event VALUES('evt_204a97c320011qxe9Wn0aUusMB','ses_dfb568677ffegb7F9xPaS2qwvW',25,'message.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"msg_204a979e6001fx02CugH9mSCY5","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","role":"assistant","time":{"created":1795374545382,"completed":1795374545970},"parentID":"msg_204a979a1001nUwf4cteEzXhmy","modelID":"m1","providerID":"mocka","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.01101555,"tokens":{"total":4146,"input":173,"output":529,"reasoning":0,"cache":{"read":3001,"write":443}},"finish":"tool-calls"}}');
INSERT INTO event VALUES('evt_204a97c36001XdkS650N17dAT3','ses_dfb568677ffegb7F9xPaS2qwvW',26,'message.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"msg_204a97c36001dWkQP9jFugEOzO","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","role":"assistant","time":{"created":1795374545974},"parentID":"msg_204a979a1001nUwf4cteEzXhmy","modelID":"m1","providerID":"mocka","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a97c4a001s3JejOjbsJiuH9','ses_dfb568677ffegb7F9xPaS2qwvW',27,'session.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"ses_dfb568677ffegb7F9xPaS2qwvW","slug":"shiny-garden","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","summary":{"additions":0,"deletions":0,"files":0},"cost":0.01101555,"tokens":{"input":173,"output":529,"reasoning":0,"cache":{"read":3001,"write":443}},"title":"sub job (@general subagent)","agent":"general","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374545288,"updated":1795374545982},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a97c4d001q6H6AQF65kZ1vG','ses_dfb568677ffegb7F9xPaS2qwvW',28,'message.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"msg_204a979a1001nUwf4cteEzXhmy","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","role":"user","time":{"created":1795374545314},"summary":{"diffs":[]},"agent":"general","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a97c6f001BiMwaDislnNg3X','ses_dfb568677ffegb7F9xPaS2qwvW',29,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97c6f001uUrFb9XjgB2VI5","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a97c36001dWkQP9jFugEOzO","type":"step-start"},"time":1795374546031}');
INSERT INTO event VALUES('evt_204a97c72001jPgrh7OpPYRAwa','ses_dfb568677ffegb7F9xPaS2qwvW',30,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97c72001WiSAmk7XUWxGag","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a97c36001dWkQP9jFugEOzO","type":"text","text":"","time":{"start":1795374546034}},"time":1795374546034}');
INSERT INTO event VALUES('evt_204a97c7e0010TUo0Vuqmcs4Fe','ses_dfb568677ffegb7F9xPaS2qwvW',31,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97c72001WiSAmk7XUWxGag","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a97c36001dWkQP9jFugEOzO","type":"text","text":"Both ran.","time":{"start":1795374546034,"end":1795374546046}},"time":1795374546046}');
INSERT INTO event VALUES('evt_204a97c82001EWnYo95QYV4KFC','ses_dfb568677ffegb7F9xPaS2qwvW',32,'message.part.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","part":{"id":"prt_204a97c82001w4FlZNRHKSus9q","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","messageID":"msg_204a97c36001dWkQP9jFugEOzO","type":"step-finish","reason":"stop","cost":0.0110694,"tokens":{"total":4158,"input":174,"output":532,"reasoning":0,"cache":{"read":3008,"write":444}}},"time":1795374546050}');
INSERT INTO event VALUES('evt_204a97c84001eQUdaFqQiEsRJ9','ses_dfb568677ffegb7F9xPaS2qwvW',33,'message.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"msg_204a97c36001dWkQP9jFugEOzO","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","role":"assistant","time":{"created":1795374545974},"parentID":"msg_204a979a1001nUwf4cteEzXhmy","modelID":"m1","providerID":"mocka","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0110694,"tokens":{"total":4158,"input":174,"output":532,"reasoning":0,"cache":{"read":3008,"write":444}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a97c87001u0KbkZB2vGM2Ya','ses_dfb568677ffegb7F9xPaS2qwvW',34,'message.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"msg_204a97c36001dWkQP9jFugEOzO","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","role":"assistant","time":{"created":1795374545974,"completed":1795374546055},"parentID":"msg_204a979a1001nUwf4cteEzXhmy","modelID":"m1","providerID":"mocka","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0110694,"tokens":{"total":4158,"input":174,"output":532,"reasoning":0,"cache":{"read":3008,"write":444}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a97c8f001cXSG9nkMlqk4pV','ses_dfb568f09ffekz8grwKjJ5X3Hw',15,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a97974001kr1gu0nbvMNSAC","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97668001QLh7H6s8l8Am6w","type":"tool","callID":"toolu_k1","tool":"task","state":{"status":"completed","input":{"description":"sub job","prompt":"#scn:two do the sub job","subagent_type":"general"},"output":"<task id=\"ses_dfb568677ffegb7F9xPaS2qwvW\" state=\"completed\">\n<task_result>\nBoth ran.\n</task_result>\n</task>","title":"sub job","metadata":{"parentSessionId":"ses_dfb568f09ffekz8grwKjJ5X3Hw","sessionId":"ses_dfb568677ffegb7F9xPaS2qwvW","model":{"modelID":"m1","providerID":"mocka"},"truncated":false},"time":{"start":1795374545299,"end":1795374546063}}},"time":1795374546063}');
INSERT INTO event VALUES('evt_204a97c92001ZqE7HT1MGs4G0e','ses_dfb568f09ffekz8grwKjJ5X3Hw',16,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a97c91001ChfgbkhARGzUrq","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97668001QLh7H6s8l8Am6w","type":"step-finish","reason":"tool-calls","cost":0.0109617,"tokens":{"total":4134,"input":172,"output":526,"reasoning":0,"cache":{"read":2994,"write":442}}},"time":1795374546066}');
INSERT INTO event VALUES('evt_204a97c93001Pa5LOQrPoU0O09','ses_dfb568f09ffekz8grwKjJ5X3Hw',17,'message.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"msg_204a97668001QLh7H6s8l8Am6w","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","role":"assistant","time":{"created":1795374544488},"parentID":"msg_204a97165001RtBO7AMevXnpcS","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0109617,"tokens":{"total":4134,"input":172,"output":526,"reasoning":0,"cache":{"read":2994,"write":442}},"finish":"tool-calls"}}');
INSERT INTO event VALUES('evt_204a97c96001etN4dSvw4Oli28','ses_dfb568f09ffekz8grwKjJ5X3Hw',18,'message.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"msg_204a97668001QLh7H6s8l8Am6w","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","role":"assistant","time":{"created":1795374544488,"completed":1795374546070},"parentID":"msg_204a97165001RtBO7AMevXnpcS","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0109617,"tokens":{"total":4134,"input":172,"output":526,"reasoning":0,"cache":{"read":2994,"write":442}},"finish":"tool-calls"}}');
INSERT INTO event VALUES('evt_204a97c99001tnlmmy6XGk747g','ses_dfb568f09ffekz8grwKjJ5X3Hw',19,'message.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"msg_204a97c98001U87f2s5ly8Muky","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","role":"assistant","time":{"created":1795374546073},"parentID":"msg_204a97165001RtBO7AMevXnpcS","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a97c9e001aMQahNO82Y5xhY','ses_dfb568677ffegb7F9xPaS2qwvW',35,'session.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"ses_dfb568677ffegb7F9xPaS2qwvW","slug":"shiny-garden","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","summary":{"additions":0,"deletions":0,"files":0},"cost":0.02208495,"tokens":{"input":347,"output":1061,"reasoning":0,"cache":{"read":6009,"write":887}},"title":"sub job (@general subagent)","agent":"general","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374545288,"updated":1795374546077},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a97ca1001ImUE9XWFPEbZGH','ses_dfb568677ffegb7F9xPaS2qwvW',36,'message.updated.1','{"sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","info":{"id":"msg_204a979a1001nUwf4cteEzXhmy","sessionID":"ses_dfb568677ffegb7F9xPaS2qwvW","role":"user","time":{"created":1795374545314},"summary":{"diffs":[]},"agent":"general","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a97ca4001FEfH3mnz26uGAI','ses_dfb568f09ffekz8grwKjJ5X3Hw',20,'session.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"ses_dfb568f09ffekz8grwKjJ5X3Hw","slug":"stellar-rocket","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.0109617,"tokens":{"input":172,"output":526,"reasoning":0,"cache":{"read":2994,"write":442}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374543094,"updated":1795374546083},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a97ca7001zCf7nrKZrP2LCz','ses_dfb568f09ffekz8grwKjJ5X3Hw',21,'message.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"msg_204a97165001RtBO7AMevXnpcS","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","role":"user","time":{"created":1795374543206},"summary":{"diffs":[]},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a97cda001aH8hAg2gPBG6x0','ses_dfb568f09ffekz8grwKjJ5X3Hw',22,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a97cda001p4OOkXqv9SysFl","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97c98001U87f2s5ly8Muky","type":"step-start"},"time":1795374546138}');
INSERT INTO event VALUES('evt_204a97cdd001Rp962jtJozuMno','ses_dfb568f09ffekz8grwKjJ5X3Hw',23,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a97cdd001JFtSlNrtFWwCAk","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97c98001U87f2s5ly8Muky","type":"text","text":"","time":{"start":1795374546141}},"time":1795374546141}');
INSERT INTO event VALUES('evt_204a97ce8001hOtlV9h86K3qMw','ses_dfb568f09ffekz8grwKjJ5X3Hw',24,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a97cdd001JFtSlNrtFWwCAk","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97c98001U87f2s5ly8Muky","type":"text","text":"The sub job is done.","time":{"start":1795374546141,"end":1795374546152}},"time":1795374546152}');
INSERT INTO event VALUES('evt_204a97cea001bdaWL46LcyFVeW','ses_dfb568f09ffekz8grwKjJ5X3Hw',25,'message.part.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","part":{"id":"prt_204a97cea0012eFMP7zWn0Yh8F","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","messageID":"msg_204a97c98001U87f2s5ly8Muky","type":"step-finish","reason":"stop","cost":0.01112325,"tokens":{"total":4170,"input":175,"output":535,"reasoning":0,"cache":{"read":3015,"write":445}}},"time":1795374546154}');
INSERT INTO event VALUES('evt_204a97ced00195J1ZKrl14ycfW','ses_dfb568f09ffekz8grwKjJ5X3Hw',26,'message.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"msg_204a97c98001U87f2s5ly8Muky","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","role":"assistant","time":{"created":1795374546073},"parentID":"msg_204a97165001RtBO7AMevXnpcS","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.01112325,"tokens":{"total":4170,"input":175,"output":535,"reasoning":0,"cache":{"read":3015,"write":445}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a97cef001aO3ZGrBms2IKZf','ses_dfb568f09ffekz8grwKjJ5X3Hw',27,'message.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"msg_204a97c98001U87f2s5ly8Muky","sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","role":"assistant","time":{"created":1795374546073,"completed":1795374546159},"parentID":"msg_204a97165001RtBO7AMevXnpcS","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.01112325,"tokens":{"total":4170,"input":175,"output":535,"reasoning":0,"cache":{"read":3015,"write":445}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a97d04001FNRWuTQIYdDcAg','ses_dfb568f09ffekz8grwKjJ5X3Hw',28,'session.updated.1','{"sessionID":"ses_dfb568f09ffekz8grwKjJ5X3Hw","info":{"id":"ses_dfb568f09ffekz8grwKjJ5X3Hw","slug":"stellar-rocket","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.02208495,"tokens":{"input":347,"output":1061,"reasoning":0,"cache":{"read":6009,"write":887}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374543094,"updated":1795374546179},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
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
INSERT INTO project VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795374542225,1795374542225,NULL,'[]',NULL);
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
INSERT INTO message VALUES('msg_204a97165001RtBO7AMevXnpcS','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374543206,1795374546088,'{"role":"user","time":{"created":1795374543206},"agent":"build","model":{"providerID":"mocka","modelID":"m1"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_204a97668001QLh7H6s8l8Am6w','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374544488,1795374546070,'{"parentID":"msg_204a97165001RtBO7AMevXnpcS","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0109617,"tokens":{"total":4134,"input":172,"output":526,"reasoning":0,"cache":{"write":442,"read":2994}},"modelID":"m1","providerID":"mocka","time":{"created":1795374544488,"completed":1795374546070},"finish":"tool-calls"}');
INSERT INTO message VALUES('msg_204a979a1001nUwf4cteEzXhmy','ses_dfb568677ffegb7F9xPaS2qwvW',1795374545314,1795374546082,'{"role":"user","time":{"created":1795374545314},"agent":"general","model":{"providerID":"mocka","modelID":"m1"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_204a979e6001fx02CugH9mSCY5','ses_dfb568677ffegb7F9xPaS2qwvW',1795374545382,1795374545971,'{"parentID":"msg_204a979a1001nUwf4cteEzXhmy","role":"assistant","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.01101555,"tokens":{"total":4146,"input":173,"output":529,"reasoning":0,"cache":{"write":443,"read":3001}},"modelID":"m1","providerID":"mocka","time":{"created":1795374545382,"completed":1795374545970},"finish":"tool-calls"}');
INSERT INTO message VALUES('msg_204a97c36001dWkQP9jFugEOzO','ses_dfb568677ffegb7F9xPaS2qwvW',1795374545974,1795374546055,'{"parentID":"msg_204a979a1001nUwf4cteEzXhmy","role":"assistant","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0110694,"tokens":{"total":4158,"input":174,"output":532,"reasoning":0,"cache":{"write":444,"read":3008}},"modelID":"m1","providerID":"mocka","time":{"created":1795374545974,"completed":1795374546055},"finish":"stop"}');
INSERT INTO message VALUES('msg_204a97c98001U87f2s5ly8Muky','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374546073,1795374546160,'{"parentID":"msg_204a97165001RtBO7AMevXnpcS","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.01112325,"tokens":{"total":4170,"input":175,"output":535,"reasoning":0,"cache":{"write":445,"read":3015}},"modelID":"m1","providerID":"mocka","time":{"created":1795374546073,"completed":1795374546159},"finish":"stop"}');
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO part VALUES('prt_204a97170001JIComLdXa42BJF','msg_204a97165001RtBO7AMevXnpcS','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374544465,1795374544467,'{"type":"text","text":"\"#scn:task go\""}');
INSERT INTO part VALUES('prt_204a9795b001a2kJ7uNyZD3jx4','msg_204a97668001QLh7H6s8l8Am6w','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374545243,1795374545259,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a9796d001c3T2Yg0PN6ZDWv','msg_204a97668001QLh7H6s8l8Am6w','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374545261,1795374545266,'{"type":"text","text":"I hand it on.","time":{"start":1795374545261,"end":1795374545265}}');
INSERT INTO part VALUES('prt_204a97974001kr1gu0nbvMNSAC','msg_204a97668001QLh7H6s8l8Am6w','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374545268,1795374546064,'{"type":"tool","tool":"task","callID":"toolu_k1","state":{"status":"completed","input":{"description":"sub job","prompt":"#scn:two do the sub job","subagent_type":"general"},"output":"<task id=\"ses_dfb568677ffegb7F9xPaS2qwvW\" state=\"completed\">\n<task_result>\nBoth ran.\n</task_result>\n</task>","metadata":{"parentSessionId":"ses_dfb568f09ffekz8grwKjJ5X3Hw","sessionId":"ses_dfb568677ffegb7F9xPaS2qwvW","model":{"modelID":"m1","providerID":"mocka"},"truncated":false},"title":"sub job","time":{"start":1795374545299,"end":1795374546063}}}');
INSERT INTO part VALUES('prt_204a979b5001R4C6EbKVmpDxx4','msg_204a979a1001nUwf4cteEzXhmy','ses_dfb568677ffegb7F9xPaS2qwvW',1795374545336,1795374545349,'{"type":"text","text":"#scn:two do the sub job"}');
INSERT INTO part VALUES('prt_204a97b280016AEuOrKdOKv7hw','msg_204a979e6001fx02CugH9mSCY5','ses_dfb568677ffegb7F9xPaS2qwvW',1795374545705,1795374545706,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a97b2c0017KEAuz1Dp1pD25','msg_204a979e6001fx02CugH9mSCY5','ses_dfb568677ffegb7F9xPaS2qwvW',1795374545708,1795374545746,'{"type":"reasoning","text":"Two.","time":{"start":1795374545708,"end":1795374545745},"metadata":{"anthropic":{"signature":"c2ln"}}}');
INSERT INTO part VALUES('prt_204a97b53001h3ejU9YLCjyx6i','msg_204a979e6001fx02CugH9mSCY5','ses_dfb568677ffegb7F9xPaS2qwvW',1795374545747,1795374545753,'{"type":"text","text":"Two calls.","time":{"start":1795374545747,"end":1795374545752}}');
INSERT INTO part VALUES('prt_204a97b5b001vztcjOftdz9EPf','msg_204a979e6001fx02CugH9mSCY5','ses_dfb568677ffegb7F9xPaS2qwvW',1795374545755,1795374545952,'{"type":"tool","tool":"bash","callID":"toolu_a","state":{"status":"completed","input":{"command":"echo one","description":"run a command"},"output":"one\n","metadata":{"output":"one\n","exit":0,"truncated":false},"title":"echo one","time":{"start":1795374545773,"end":1795374545951}}}');
INSERT INTO part VALUES('prt_204a97b70001bgL2sTk1j1HMoS','msg_204a979e6001fx02CugH9mSCY5','ses_dfb568677ffegb7F9xPaS2qwvW',1795374545776,1795374545961,'{"type":"tool","tool":"bash","callID":"toolu_b","state":{"status":"completed","input":{"command":"echo two","description":"run a command"},"output":"two\n","metadata":{"output":"two\n","exit":0,"truncated":false},"title":"echo two","time":{"start":1795374545796,"end":1795374545959}}}');
INSERT INTO part VALUES('prt_204a97c2c0018LbCR0Jw448evw','msg_204a979e6001fx02CugH9mSCY5','ses_dfb568677ffegb7F9xPaS2qwvW',1795374545964,1795374545965,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":4146,"input":173,"output":529,"reasoning":0,"cache":{"write":443,"read":3001}},"cost":0.01101555}');
INSERT INTO part VALUES('prt_204a97c6f001uUrFb9XjgB2VI5','msg_204a97c36001dWkQP9jFugEOzO','ses_dfb568677ffegb7F9xPaS2qwvW',1795374546031,1795374546032,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a97c72001WiSAmk7XUWxGag','msg_204a97c36001dWkQP9jFugEOzO','ses_dfb568677ffegb7F9xPaS2qwvW',1795374546034,1795374546047,'{"type":"text","text":"Both ran.","time":{"start":1795374546034,"end":1795374546046}}');
INSERT INTO part VALUES('prt_204a97c82001w4FlZNRHKSus9q','msg_204a97c36001dWkQP9jFugEOzO','ses_dfb568677ffegb7F9xPaS2qwvW',1795374546050,1795374546051,'{"reason":"stop","type":"step-finish","tokens":{"total":4158,"input":174,"output":532,"reasoning":0,"cache":{"write":444,"read":3008}},"cost":0.0110694}');
INSERT INTO part VALUES('prt_204a97c91001ChfgbkhARGzUrq','msg_204a97668001QLh7H6s8l8Am6w','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374546066,1795374546066,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":4134,"input":172,"output":526,"reasoning":0,"cache":{"write":442,"read":2994}},"cost":0.0109617}');
INSERT INTO part VALUES('prt_204a97cda001p4OOkXqv9SysFl','msg_204a97c98001U87f2s5ly8Muky','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374546138,1795374546140,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a97cdd001JFtSlNrtFWwCAk','msg_204a97c98001U87f2s5ly8Muky','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374546141,1795374546153,'{"type":"text","text":"The sub job is done.","time":{"start":1795374546141,"end":1795374546152}}');
INSERT INTO part VALUES('prt_204a97cea0012eFMP7zWn0Yh8F','msg_204a97c98001U87f2s5ly8Muky','ses_dfb568f09ffekz8grwKjJ5X3Hw',1795374546154,1795374546156,'{"reason":"stop","type":"step-finish","tokens":{"total":4170,"input":175,"output":535,"reasoning":0,"cache":{"write":445,"read":3015}},"cost":0.01112325}');
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
INSERT INTO session VALUES('ses_dfb568f09ffekz8grwKjJ5X3Hw','global',NULL,NULL,'stellar-rocket','/tmp/box/ws','tmp/box/ws','Mock title','1.18.33',NULL,0,0,0,NULL,NULL,0.022084949999999999026,347,1061,0,6009,887,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m1","providerID":"mocka","variant":"default"}',1795374543094,1795374546179,NULL,NULL);
INSERT INTO session VALUES('ses_dfb568677ffegb7F9xPaS2qwvW','global',NULL,'ses_dfb568f09ffekz8grwKjJ5X3Hw','shiny-garden','/tmp/box/ws','tmp/box/ws','sub job (@general subagent)','1.18.33',NULL,0,0,0,NULL,NULL,0.022084949999999999026,347,1061,0,6009,887,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]','general','{"id":"m1","providerID":"mocka","variant":"default"}',1795374545288,1795374546077,NULL,NULL);
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
INSERT INTO migration VALUES('20260127222353_familiar_lady_ursula',1795374541835);
INSERT INTO migration VALUES('20260211171708_add_project_commands',1795374541836);
INSERT INTO migration VALUES('20260213144116_wakeful_the_professor',1795374541836);
INSERT INTO migration VALUES('20260225215848_workspace',1795374541836);
INSERT INTO migration VALUES('20260227213759_add_session_workspace_id',1795374541836);
INSERT INTO migration VALUES('20260228203230_blue_harpoon',1795374541836);
INSERT INTO migration VALUES('20260303231226_add_workspace_fields',1795374541836);
INSERT INTO migration VALUES('20260309230000_move_org_to_state',1795374541837);
INSERT INTO migration VALUES('20260312043431_session_message_cursor',1795374541837);
INSERT INTO migration VALUES('20260323234822_events',1795374541837);
INSERT INTO migration VALUES('20260410174513_workspace-name',1795374541837);
INSERT INTO migration VALUES('20260413175956_chief_energizer',1795374541837);
INSERT INTO migration VALUES('20260423070820_add_icon_url_override',1795374541837);
INSERT INTO migration VALUES('20260427172553_slow_nightmare',1795374541837);
INSERT INTO migration VALUES('20260428004200_add_session_path',1795374541837);
INSERT INTO migration VALUES('20260501142318_next_venus',1795374541837);
INSERT INTO migration VALUES('20260504145000_add_sync_owner',1795374541838);
INSERT INTO migration VALUES('20260507164347_add_workspace_time',1795374541838);
INSERT INTO migration VALUES('20260510033149_session_usage',1795374541838);
INSERT INTO migration VALUES('20260511000411_data_migration_state',1795374541838);
INSERT INTO migration VALUES('20260511173437_session-metadata',1795374541839);
INSERT INTO migration VALUES('20260601010001_normalize_storage_paths',1795374541839);
INSERT INTO migration VALUES('20260601202201_amazing_prowler',1795374541839);
INSERT INTO migration VALUES('20260602002951_lowly_union_jack',1795374541839);
INSERT INTO migration VALUES('20260602182828_add_project_directories',1795374541839);
INSERT INTO migration VALUES('20260603001617_session_message_projection_indexes',1795374541839);
INSERT INTO migration VALUES('20260603040000_session_message_projection_order',1795374541839);
INSERT INTO migration VALUES('20260603141458_session_input_inbox',1795374541839);
INSERT INTO migration VALUES('20260603160727_jittery_ezekiel_stane',1795374541840);
INSERT INTO migration VALUES('20260604172448_event_sourced_session_input',1795374541840);
INSERT INTO migration VALUES('20260605003541_add_session_context_snapshot',1795374541840);
INSERT INTO migration VALUES('20260605042240_add_context_epoch_agent',1795374541840);
INSERT INTO migration VALUES('20260611035744_credential',1795374541840);
INSERT INTO migration VALUES('20260611192811_lush_chimera',1795374541840);
INSERT INTO migration VALUES('20260612174303_project_dir_strategy',1795374541840);
INSERT INTO migration VALUES('20260622142730_simplify_session_context_epoch',1795374541840);
INSERT INTO migration VALUES('20260622170816_reset_v2_session_state',1795374541841);
INSERT INTO migration VALUES('20260622202450_simplify_session_input',1795374541841);
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
