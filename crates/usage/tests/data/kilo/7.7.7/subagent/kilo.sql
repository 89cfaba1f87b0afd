PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
CREATE TABLE `account_state` (
          `id` integer PRIMARY KEY,
          `active_account_id` text,
          `active_org_id` text,
          CONSTRAINT `fk_account_state_active_account_id_account_id_fk` FOREIGN KEY (`active_account_id`) REFERENCES `account`(`id`) ON DELETE SET NULL
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
CREATE TABLE `data_migration` (
          `name` text PRIMARY KEY,
          `time_completed` integer NOT NULL
        );
CREATE TABLE `event` (
          `id` text PRIMARY KEY,
          `aggregate_id` text NOT NULL,
          `seq` integer NOT NULL,
          `type` text NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_event_aggregate_id_event_sequence_aggregate_id_fk` FOREIGN KEY (`aggregate_id`) REFERENCES `event_sequence`(`aggregate_id`) ON DELETE CASCADE
        );
INSERT INTO "event" VALUES('evt_20d789f63001TNFpk9i6VlExo2','ses_df28760a8ffeiNJPnYz1j9u4bA',0,'session.created.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"ses_df28760a8ffeiNJPnYz1j9u4bA","slug":"eager-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Ask a sub-agent","version":"7.7.7","time":{"created":1795522338647,"updated":1795522338647},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78d874001f4UGvEUq0SSjbi','ses_df28760a8ffeiNJPnYz1j9u4bA',1,'session.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"ses_df28760a8ffeiNJPnYz1j9u4bA","slug":"eager-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Ask a sub-agent","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522338647,"updated":1795522353266},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78d8b5001WI0nz2rsLz6q1D','ses_df28760a8ffeiNJPnYz1j9u4bA',2,'message.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"msg_20d78d871001edLW2Txt2sP5tb","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","role":"user","time":{"created":1795522353266},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d78d8b9001y2CQylHaRlLN8v','ses_df28760a8ffeiNJPnYz1j9u4bA',3,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78d8b1001cWQXln8Rn9QBMN","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78d871001edLW2Txt2sP5tb","type":"text","text":"Ask a sub-agent"},"time":1795522353337}');
INSERT INTO "event" VALUES('evt_20d78d8c0001AbIVUbdF8rITlf','ses_df28760a8ffeiNJPnYz1j9u4bA',4,'session.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"ses_df28760a8ffeiNJPnYz1j9u4bA","slug":"eager-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Ask a sub-agent","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522338647,"updated":1795522353344},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78e466001PHeKnhwemMYqvM','ses_df28760a8ffeiNJPnYz1j9u4bA',5,'message.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"msg_20d78e458001G3kfcSWJvVtmMp","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","role":"assistant","time":{"created":1795522356312},"parentID":"msg_20d78d871001edLW2Txt2sP5tb","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d78e677001BOS3y07AGEWOsP','ses_df28760a8ffeiNJPnYz1j9u4bA',6,'session.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"ses_df28760a8ffeiNJPnYz1j9u4bA","slug":"eager-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Ask a sub-agent","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522338647,"updated":1795522356854},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78e683002ZKmLN7BEs7Dok1','ses_df28760a8ffeiNJPnYz1j9u4bA',7,'message.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"msg_20d78d871001edLW2Txt2sP5tb","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","role":"user","time":{"created":1795522353266},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d78e68b001qjhtYU1yECKJXM','ses_df2871975ffezFACCdSJUGt6Pm',0,'session.created.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"ses_df2871975ffezFACCdSJUGt6Pm","slug":"mighty-wizard","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_df28760a8ffeiNJPnYz1j9u4bA","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Sub-agent (@general subagent)","agent":"general","version":"7.7.7","time":{"created":1795522356874,"updated":1795522356874},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"},{"permission":"repo_clone","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78e697001sjrjj4JCHuJ2YV','ses_df2871975ffezFACCdSJUGt6Pm',1,'session.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"ses_df2871975ffezFACCdSJUGt6Pm","slug":"mighty-wizard","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_df28760a8ffeiNJPnYz1j9u4bA","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Sub-agent (@general subagent)","agent":"general","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522356874,"updated":1795522356886},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"},{"permission":"repo_clone","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78e69b0019d71nWcqXJd2Tk','ses_df2871975ffezFACCdSJUGt6Pm',2,'message.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"msg_20d78e6930015OxAgNWjg79H46","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","role":"user","time":{"created":1795522356886},"agent":"general","model":{"providerID":"mock","modelID":"mock-model"},"tools":{"question":false,"task":false}}}');
INSERT INTO "event" VALUES('evt_20d78e69d001zjrmBHuQk61SSv','ses_df2871975ffezFACCdSJUGt6Pm',3,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78e69b0016yOwlwxrsWLyCa","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78e6930015OxAgNWjg79H46","type":"text","text":"Count the files"},"time":1795522356893}');
INSERT INTO "event" VALUES('evt_20d78e69f001Pc2T4Dqwf9Ui5a','ses_df2871975ffezFACCdSJUGt6Pm',4,'session.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"ses_df2871975ffezFACCdSJUGt6Pm","slug":"mighty-wizard","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_df28760a8ffeiNJPnYz1j9u4bA","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Sub-agent (@general subagent)","agent":"general","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522356874,"updated":1795522356894},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"},{"permission":"repo_clone","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78e6aa001dInWkXlMyoGQEE','ses_df2871975ffezFACCdSJUGt6Pm',5,'session.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"ses_df2871975ffezFACCdSJUGt6Pm","slug":"mighty-wizard","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_df28760a8ffeiNJPnYz1j9u4bA","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Sub-agent (@general subagent)","agent":"general","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522356874,"updated":1795522356897},"permission":[{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"repo_clone","pattern":"*","action":"deny"},{"permission":"question","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78e71d001kteFtOeefAm6P3','ses_df2871975ffezFACCdSJUGt6Pm',6,'message.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"msg_20d78e71d001hGXyjkKLUGxX5x","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","role":"assistant","time":{"created":1795522357021},"parentID":"msg_20d78e6930015OxAgNWjg79H46","modelID":"mock-model","providerID":"mock","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d78e769001PcXwZGJMQowlmK','ses_df28760a8ffeiNJPnYz1j9u4bA',8,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78e768001W06QJBBV43G616","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78e458001G3kfcSWJvVtmMp","type":"step-start"},"time":1795522357096}');
INSERT INTO "event" VALUES('evt_20d78e76c0015GYK7PBdZIj1Hp','ses_df28760a8ffeiNJPnYz1j9u4bA',9,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78e76c001rX15qNB266jBSh","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78e458001G3kfcSWJvVtmMp","type":"tool","callID":"toolu_mock_0_0_0","tool":"task","state":{"status":"pending","input":{},"raw":""}},"time":1795522357100}');
INSERT INTO "event" VALUES('evt_20d78e771001AD4KVQJvKhMpn1','ses_df28760a8ffeiNJPnYz1j9u4bA',10,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78e76c001rX15qNB266jBSh","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78e458001G3kfcSWJvVtmMp","type":"tool","callID":"toolu_mock_0_0_0","tool":"task","state":{"status":"running","input":{"description":"Sub-agent","prompt":"Count the files","subagent_type":"general"},"title":"Sub-agent","metadata":{"parentSessionId":"ses_df28760a8ffeiNJPnYz1j9u4bA","sessionId":"ses_df2871975ffezFACCdSJUGt6Pm","model":{"modelID":"mock-model","providerID":"mock"},"approval":{"source":"agent","agent":"code","rule":{"permission":"*","pattern":"*","action":"allow"}}},"time":{"start":1795522357104}}},"time":1795522357105}');
INSERT INTO "event" VALUES('evt_20d78e9c8001MIMxxrSrtB1gy4','ses_df2871975ffezFACCdSJUGt6Pm',7,'session.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"ses_df2871975ffezFACCdSJUGt6Pm","slug":"mighty-wizard","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_df28760a8ffeiNJPnYz1j9u4bA","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Sub-agent (@general subagent)","agent":"general","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522356874,"updated":1795522357702},"permission":[{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"repo_clone","pattern":"*","action":"deny"},{"permission":"question","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78e9d2002s6ZxQErPe88ffm','ses_df2871975ffezFACCdSJUGt6Pm',8,'message.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"msg_20d78e6930015OxAgNWjg79H46","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","role":"user","time":{"created":1795522356886},"summary":{"diffs":[]},"agent":"general","model":{"providerID":"mock","modelID":"mock-model"},"tools":{"question":false,"task":false}}}');
INSERT INTO "event" VALUES('evt_20d78eb120015soTI2Er6ZD1js','ses_df2871975ffezFACCdSJUGt6Pm',9,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78eb10001OROb2pIYzJEBPt","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78e71d001hGXyjkKLUGxX5x","type":"step-start"},"time":1795522358032}');
INSERT INTO "event" VALUES('evt_20d78eb23001tWHmk2Nso69aSb','ses_df2871975ffezFACCdSJUGt6Pm',10,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78eb22001xkdvHraFxgszVH","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78e71d001hGXyjkKLUGxX5x","type":"tool","callID":"toolu_mock_agent0_0_0_0","tool":"bash","state":{"status":"pending","input":{},"raw":""}},"time":1795522358051}');
INSERT INTO "event" VALUES('evt_20d78eb30001qnAVE1niQ9jPTF','ses_df2871975ffezFACCdSJUGt6Pm',11,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78eb22001xkdvHraFxgszVH","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78e71d001hGXyjkKLUGxX5x","type":"tool","callID":"toolu_mock_agent0_0_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"time":{"start":1795522358064}}},"time":1795522358064}');
INSERT INTO "event" VALUES('evt_20d78eb48001FMYYs1cDuJfpbj','ses_df2871975ffezFACCdSJUGt6Pm',12,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78eb22001xkdvHraFxgszVH","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78e71d001hGXyjkKLUGxX5x","type":"tool","callID":"toolu_mock_agent0_0_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"approval":{"source":"agent","agent":"general","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522358064}}},"time":1795522358088}');
INSERT INTO "event" VALUES('evt_20d78eb81001p52SoV90zjorgH','ses_df2871975ffezFACCdSJUGt6Pm',13,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78eb22001xkdvHraFxgszVH","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78e71d001hGXyjkKLUGxX5x","type":"tool","callID":"toolu_mock_agent0_0_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"output":"","approval":{"source":"agent","agent":"general","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522358064}}},"time":1795522358145}');
INSERT INTO "event" VALUES('evt_20d78ebb4001ZoSZI6dhI7jn8L','ses_df2871975ffezFACCdSJUGt6Pm',14,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78eb22001xkdvHraFxgszVH","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78e71d001hGXyjkKLUGxX5x","type":"tool","callID":"toolu_mock_agent0_0_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"output":"hi\n","approval":{"source":"agent","agent":"general","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522358064}}},"time":1795522358196}');
INSERT INTO "event" VALUES('evt_20d78ebe0001ihQmA2WmiviqvG','ses_df2871975ffezFACCdSJUGt6Pm',15,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78eb22001xkdvHraFxgszVH","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78e71d001hGXyjkKLUGxX5x","type":"tool","callID":"toolu_mock_agent0_0_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"output":"hi\n","approval":{"source":"agent","agent":"general","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522358064}}},"time":1795522358240}');
INSERT INTO "event" VALUES('evt_20d78ec15001WVr4Hvbkb87Pfz','ses_df2871975ffezFACCdSJUGt6Pm',16,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78eb22001xkdvHraFxgszVH","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78e71d001hGXyjkKLUGxX5x","type":"tool","callID":"toolu_mock_agent0_0_0_0","tool":"bash","state":{"status":"completed","input":{"command":"echo hi"},"output":"hi\n","title":"echo hi","metadata":{"output":"hi\n","exit":0,"description":"echo hi","truncated":false,"approval":{"source":"agent","agent":"general","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522358064,"end":1795522358293}}},"time":1795522358293}');
INSERT INTO "event" VALUES('evt_20d78ec54001vGF1f4n5xVyKfn','ses_df2871975ffezFACCdSJUGt6Pm',17,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78ec54001AjqDXCddGDbfKj","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78e71d001hGXyjkKLUGxX5x","type":"step-finish","reason":"tool-calls","metrics":{"generation":48.824593128390596,"source":"computed"},"time":{"start":1795522357800,"end":1795522358353,"elapsed":553},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}}},"time":1795522358356}');
INSERT INTO "event" VALUES('evt_20d78ec5b001L9JfddfEEyYW48','ses_df2871975ffezFACCdSJUGt6Pm',18,'message.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"msg_20d78e71d001hGXyjkKLUGxX5x","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","role":"assistant","time":{"created":1795522357021},"parentID":"msg_20d78e6930015OxAgNWjg79H46","modelID":"mock-model","providerID":"mock","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"tool-calls"}}');
INSERT INTO "event" VALUES('evt_20d78ec7b001iEgRgvCUWukcvP','ses_df2871975ffezFACCdSJUGt6Pm',19,'message.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"msg_20d78e71d001hGXyjkKLUGxX5x","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","role":"assistant","time":{"created":1795522357021,"completed":1795522358394},"parentID":"msg_20d78e6930015OxAgNWjg79H46","modelID":"mock-model","providerID":"mock","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"tool-calls"}}');
INSERT INTO "event" VALUES('evt_20d78ec83001dvYg57g36YniIr','ses_df2871975ffezFACCdSJUGt6Pm',20,'session.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"ses_df2871975ffezFACCdSJUGt6Pm","slug":"mighty-wizard","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_df28760a8ffeiNJPnYz1j9u4bA","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00414555,"tokens":{"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"title":"Sub-agent (@general subagent)","agent":"general","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522356874,"updated":1795522358403},"permission":[{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"repo_clone","pattern":"*","action":"deny"},{"permission":"question","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78ec8f001ILHDIW1W6fXmd5','ses_df2871975ffezFACCdSJUGt6Pm',21,'message.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"msg_20d78ec8e001fEgIkRDq0W64ea","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","role":"assistant","time":{"created":1795522358414},"parentID":"msg_20d78e6930015OxAgNWjg79H46","modelID":"mock-model","providerID":"mock","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d78ec9b001yc826Ezy7xIHEx','ses_df2871975ffezFACCdSJUGt6Pm',22,'message.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"msg_20d78e6930015OxAgNWjg79H46","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","role":"user","time":{"created":1795522356886},"summary":{"diffs":[]},"agent":"general","model":{"providerID":"mock","modelID":"mock-model"},"tools":{"question":false,"task":false}}}');
INSERT INTO "event" VALUES('evt_20d78ed47001dEAZP34Bf7ep3q','ses_df2871975ffezFACCdSJUGt6Pm',23,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78ed47001RfsAFkhJUDBPYM","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78ec8e001fEgIkRDq0W64ea","type":"step-start"},"time":1795522358599}');
INSERT INTO "event" VALUES('evt_20d78ed4a0011RvijpJwp5Ry87','ses_df2871975ffezFACCdSJUGt6Pm',24,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78ed4a001D8u8xmR8ROQuPm","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78ec8e001fEgIkRDq0W64ea","type":"text","text":"","time":{"start":1795522358602}},"time":1795522358602}');
INSERT INTO "event" VALUES('evt_20d78ed4d002T3DvdAbz13HZ5X','ses_df2871975ffezFACCdSJUGt6Pm',25,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78ed4a001D8u8xmR8ROQuPm","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78ec8e001fEgIkRDq0W64ea","type":"text","text":"There are none.","time":{"start":1795522358602,"end":1795522358605}},"time":1795522358605}');
INSERT INTO "event" VALUES('evt_20d78ed7b001AznkKy9W7mW4Yy','ses_df2871975ffezFACCdSJUGt6Pm',26,'message.part.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","part":{"id":"prt_20d78ed7b001edAgBpnk7BwP7f","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","messageID":"msg_20d78ec8e001fEgIkRDq0W64ea","type":"step-finish","reason":"stop","metrics":{"generation":478.8732394366197,"source":"computed"},"time":{"start":1795522358579,"end":1795522358650,"elapsed":71},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}}},"time":1795522358651}');
INSERT INTO "event" VALUES('evt_20d78ed7d001Fy26oOZ8fCVaUC','ses_df2871975ffezFACCdSJUGt6Pm',27,'message.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"msg_20d78ec8e001fEgIkRDq0W64ea","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","role":"assistant","time":{"created":1795522358414},"parentID":"msg_20d78e6930015OxAgNWjg79H46","modelID":"mock-model","providerID":"mock","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d78ed87001a73pRshOurc5aa','ses_df2871975ffezFACCdSJUGt6Pm',28,'message.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"msg_20d78ec8e001fEgIkRDq0W64ea","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","role":"assistant","time":{"created":1795522358414,"completed":1795522358662},"parentID":"msg_20d78e6930015OxAgNWjg79H46","modelID":"mock-model","providerID":"mock","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d78edaf001MlNhGLzPP7otTp','ses_df28760a8ffeiNJPnYz1j9u4bA',11,'message.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"msg_20d78e458001G3kfcSWJvVtmMp","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","role":"assistant","time":{"created":1795522356312},"parentID":"msg_20d78d871001edLW2Txt2sP5tb","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00885915,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d78edb4001nzJ91Fla2wWtR2','ses_df2871975ffezFACCdSJUGt6Pm',29,'session.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"ses_df2871975ffezFACCdSJUGt6Pm","slug":"mighty-wizard","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","parentID":"ses_df28760a8ffeiNJPnYz1j9u4bA","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00885915,"tokens":{"input":2411,"output":61,"reasoning":0,"cache":{"read":633,"write":139}},"title":"Sub-agent (@general subagent)","agent":"general","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522356874,"updated":1795522358708},"permission":[{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"repo_clone","pattern":"*","action":"deny"},{"permission":"question","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78edbc001ZFX4yZ4YJQ4Oyw','ses_df28760a8ffeiNJPnYz1j9u4bA',12,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78e76c001rX15qNB266jBSh","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78e458001G3kfcSWJvVtmMp","type":"tool","callID":"toolu_mock_0_0_0","tool":"task","state":{"status":"running","input":{"description":"Sub-agent","prompt":"Count the files","subagent_type":"general"},"title":"Sub-agent","metadata":{"output":"<task id=\"ses_df2871975ffezFACCdSJUGt6Pm\" state=\"completed\">\n<task_result>\nThere are none.\n</task_result>\n</task>","approval":{"source":"agent","agent":"code","rule":{"permission":"*","pattern":"*","action":"allow"}}},"time":{"start":1795522357104}}},"time":1795522358716}');
INSERT INTO "event" VALUES('evt_20d78edc2002lgZb0Qzh8RtYjt','ses_df2871975ffezFACCdSJUGt6Pm',30,'message.updated.1','{"sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","info":{"id":"msg_20d78e6930015OxAgNWjg79H46","sessionID":"ses_df2871975ffezFACCdSJUGt6Pm","role":"user","time":{"created":1795522356886},"summary":{"diffs":[]},"agent":"general","model":{"providerID":"mock","modelID":"mock-model"},"tools":{"question":false,"task":false}}}');
INSERT INTO "event" VALUES('evt_20d78ee04001tGDCPiZxh5ghpu','ses_df28760a8ffeiNJPnYz1j9u4bA',13,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78e76c001rX15qNB266jBSh","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78e458001G3kfcSWJvVtmMp","type":"tool","callID":"toolu_mock_0_0_0","tool":"task","state":{"status":"completed","input":{"description":"Sub-agent","prompt":"Count the files","subagent_type":"general"},"output":"<task id=\"ses_df2871975ffezFACCdSJUGt6Pm\" state=\"completed\">\n<task_result>\nThere are none.\n</task_result>\n</task>","title":"Sub-agent","metadata":{"parentSessionId":"ses_df28760a8ffeiNJPnYz1j9u4bA","sessionId":"ses_df2871975ffezFACCdSJUGt6Pm","model":{"modelID":"mock-model","providerID":"mock"},"truncated":false,"approval":{"source":"agent","agent":"code","rule":{"permission":"*","pattern":"*","action":"allow"}}},"time":{"start":1795522357104,"end":1795522358787}}},"time":1795522358787}');
INSERT INTO "event" VALUES('evt_20d78ee50001XS5DhyZK98hDG0','ses_df28760a8ffeiNJPnYz1j9u4bA',14,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78ee50001pcnKw9bleUSk03","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78e458001G3kfcSWJvVtmMp","type":"step-finish","reason":"tool-calls","metrics":{"generation":20.266930301532376,"source":"computed"},"time":{"start":1795522356839,"end":1795522358863,"elapsed":2023},"cost":0.00528165,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"read":333,"write":89}}},"time":1795522358864}');
INSERT INTO "event" VALUES('evt_20d78ee5200185cLkNcrm2B35Q','ses_df28760a8ffeiNJPnYz1j9u4bA',15,'message.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"msg_20d78e458001G3kfcSWJvVtmMp","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","role":"assistant","time":{"created":1795522356312},"parentID":"msg_20d78d871001edLW2Txt2sP5tb","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.014140799999999999,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"read":333,"write":89}},"finish":"tool-calls"}}');
INSERT INTO "event" VALUES('evt_20d78ee79001hABXmWd1Fatr1w','ses_df28760a8ffeiNJPnYz1j9u4bA',16,'message.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"msg_20d78e458001G3kfcSWJvVtmMp","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","role":"assistant","time":{"created":1795522356312,"completed":1795522358904},"parentID":"msg_20d78d871001edLW2Txt2sP5tb","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.014140799999999999,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"read":333,"write":89}},"finish":"tool-calls"}}');
INSERT INTO "event" VALUES('evt_20d78ee83001TTojX46fc6L0e1','ses_df28760a8ffeiNJPnYz1j9u4bA',17,'session.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"ses_df28760a8ffeiNJPnYz1j9u4bA","slug":"eager-eagle","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00528165,"tokens":{"input":1411,"output":41,"reasoning":0,"cache":{"read":333,"write":89}},"title":"Ask a sub-agent","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522338647,"updated":1795522358914},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d78ee8a001UXgxD1huooNhmv','ses_df28760a8ffeiNJPnYz1j9u4bA',18,'message.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"msg_20d78ee8a001Q0aX7BBZOyKBHl","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","role":"assistant","time":{"created":1795522358922},"parentID":"msg_20d78d871001edLW2Txt2sP5tb","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d78ee8e001sUM1tZSdV4x7EY','ses_df28760a8ffeiNJPnYz1j9u4bA',19,'message.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"msg_20d78d871001edLW2Txt2sP5tb","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","role":"user","time":{"created":1795522353266},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d78efce001dz7HqthZMMOrXZ','ses_df28760a8ffeiNJPnYz1j9u4bA',20,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78efce001Mqzp4gzVAnxf7V","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78ee8a001Q0aX7BBZOyKBHl","type":"step-start"},"time":1795522359246}');
INSERT INTO "event" VALUES('evt_20d78efd0001uJtoNmb6KftD3J','ses_df28760a8ffeiNJPnYz1j9u4bA',21,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78efd0001f1KXRBigvSu9nS","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78ee8a001Q0aX7BBZOyKBHl","type":"text","text":"","time":{"start":1795522359248}},"time":1795522359248}');
INSERT INTO "event" VALUES('evt_20d78efd3001r6x1kXo5a2iV9D','ses_df28760a8ffeiNJPnYz1j9u4bA',22,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78efd0001f1KXRBigvSu9nS","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78ee8a001Q0aX7BBZOyKBHl","type":"text","text":"The sub-agent says none.","time":{"start":1795522359248,"end":1795522359251}},"time":1795522359251}');
INSERT INTO "event" VALUES('evt_20d78eff30019h4XAX01lo21fb','ses_df28760a8ffeiNJPnYz1j9u4bA',23,'message.part.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","part":{"id":"prt_20d78eff3001nKHT33eqMbYqOU","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","messageID":"msg_20d78ee8a001Q0aX7BBZOyKBHl","type":"step-finish","reason":"stop","metrics":{"generation":888.8888888888889,"source":"computed"},"time":{"start":1795522359228,"end":1795522359281,"elapsed":54},"cost":0.0058497,"tokens":{"total":2042,"input":1548,"output":48,"reasoning":0,"cache":{"read":344,"write":102}}},"time":1795522359283}');
INSERT INTO "event" VALUES('evt_20d78eff7001DwOlmzKhoxzHEn','ses_df28760a8ffeiNJPnYz1j9u4bA',24,'message.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"msg_20d78ee8a001Q0aX7BBZOyKBHl","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","role":"assistant","time":{"created":1795522358922},"parentID":"msg_20d78d871001edLW2Txt2sP5tb","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0058497,"tokens":{"total":2042,"input":1548,"output":48,"reasoning":0,"cache":{"read":344,"write":102}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d78effb001Zb7ZzUFNLoUHmM','ses_df28760a8ffeiNJPnYz1j9u4bA',25,'message.updated.1','{"sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","info":{"id":"msg_20d78ee8a001Q0aX7BBZOyKBHl","sessionID":"ses_df28760a8ffeiNJPnYz1j9u4bA","role":"assistant","time":{"created":1795522358922,"completed":1795522359290},"parentID":"msg_20d78d871001edLW2Txt2sP5tb","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0058497,"tokens":{"total":2042,"input":1548,"output":48,"reasoning":0,"cache":{"read":344,"write":102}},"finish":"stop"}}');
CREATE TABLE `event_sequence` (
          `aggregate_id` text PRIMARY KEY,
          `seq` integer NOT NULL,
          `owner_id` text
        );
INSERT INTO "event_sequence" VALUES('ses_df28760a8ffeiNJPnYz1j9u4bA',25,NULL);
INSERT INTO "event_sequence" VALUES('ses_df2871975ffezFACCdSJUGt6Pm',30,NULL);
CREATE TABLE `kilo_board` (
          `root_session_id` text PRIMARY KEY,
          `objective` text NOT NULL,
          `objective_message_id` text,
          `next_seq` integer DEFAULT 1 NOT NULL,
          `cleared_seq` integer DEFAULT 0 NOT NULL,
          `message_count` integer DEFAULT 0 NOT NULL,
          `message_bytes` integer DEFAULT 0 NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          CONSTRAINT `fk_kilo_board_root_session_id_session_id_fk` FOREIGN KEY (`root_session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
INSERT INTO "kilo_board" VALUES('ses_df28760a8ffeiNJPnYz1j9u4bA','Ask a sub-agent','msg_20d78d871001edLW2Txt2sP5tb',1,0,0,0,1795522358289,1795522358289);
CREATE TABLE `kilo_board_message` (
          `id` text PRIMARY KEY,
          `board_root_session_id` text NOT NULL,
          `seq` integer NOT NULL,
          `time_created` integer NOT NULL,
          `sender_session_id` text NOT NULL,
          `recipient` text NOT NULL,
          `type` text NOT NULL,
          `body` text NOT NULL,
          `reply_to` text,
          `source_message_id` text NOT NULL,
          `source_call_id` text NOT NULL,
          CONSTRAINT `fk_kilo_board_message_board_root_session_id_kilo_board_root_session_id_fk` FOREIGN KEY (`board_root_session_id`) REFERENCES `kilo_board`(`root_session_id`) ON DELETE CASCADE
        );
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
INSERT INTO "message" VALUES('msg_20d78d871001edLW2Txt2sP5tb','ses_df28760a8ffeiNJPnYz1j9u4bA',1795522353266,1795522358926,'{"role":"user","time":{"created":1795522353266},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_20d78e458001G3kfcSWJvVtmMp','ses_df28760a8ffeiNJPnYz1j9u4bA',1795522356312,1795522358905,'{"parentID":"msg_20d78d871001edLW2Txt2sP5tb","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.014140799999999999,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"write":89,"read":333}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522356312,"completed":1795522358904},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_20d78e6930015OxAgNWjg79H46','ses_df2871975ffezFACCdSJUGt6Pm',1795522356886,1795522358723,'{"role":"user","time":{"created":1795522356886},"tools":{"question":false,"task":false},"agent":"general","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_20d78e71d001hGXyjkKLUGxX5x','ses_df2871975ffezFACCdSJUGt6Pm',1795522357021,1795522358396,'{"parentID":"msg_20d78e6930015OxAgNWjg79H46","role":"assistant","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522357021,"completed":1795522358394},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_20d78ec8e001fEgIkRDq0W64ea','ses_df2871975ffezFACCdSJUGt6Pm',1795522358414,1795522358663,'{"parentID":"msg_20d78e6930015OxAgNWjg79H46","role":"assistant","mode":"general","agent":"general","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"write":76,"read":322}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522358414,"completed":1795522358662},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_20d78ee8a001Q0aX7BBZOyKBHl','ses_df28760a8ffeiNJPnYz1j9u4bA',1795522358922,1795522359291,'{"parentID":"msg_20d78d871001edLW2Txt2sP5tb","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0058497,"tokens":{"total":2042,"input":1548,"output":48,"reasoning":0,"cache":{"write":102,"read":344}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522358922,"completed":1795522359290},"finish":"stop"}');
CREATE TABLE "migration" (id TEXT PRIMARY KEY, time_completed INTEGER NOT NULL);
INSERT INTO "migration" VALUES('20260127222353_familiar_lady_ursula',1795522333224);
INSERT INTO "migration" VALUES('20260211171708_add_project_commands',1795522333224);
INSERT INTO "migration" VALUES('20260213144116_wakeful_the_professor',1795522333225);
INSERT INTO "migration" VALUES('20260225215848_workspace',1795522333225);
INSERT INTO "migration" VALUES('20260227213759_add_session_workspace_id',1795522333225);
INSERT INTO "migration" VALUES('20260228203230_blue_harpoon',1795522333225);
INSERT INTO "migration" VALUES('20260303231226_add_workspace_fields',1795522333225);
INSERT INTO "migration" VALUES('20260309230000_move_org_to_state',1795522333225);
INSERT INTO "migration" VALUES('20260312043431_session_message_cursor',1795522333225);
INSERT INTO "migration" VALUES('20260323234822_events',1795522333225);
INSERT INTO "migration" VALUES('20260410174513_workspace-name',1795522333225);
INSERT INTO "migration" VALUES('20260413175956_chief_energizer',1795522333225);
INSERT INTO "migration" VALUES('20260423070820_add_icon_url_override',1795522333225);
INSERT INTO "migration" VALUES('20260427172553_slow_nightmare',1795522333225);
INSERT INTO "migration" VALUES('20260428004200_add_session_path',1795522333225);
INSERT INTO "migration" VALUES('20260501142318_next_venus',1795522333225);
INSERT INTO "migration" VALUES('20260504145000_add_sync_owner',1795522333225);
INSERT INTO "migration" VALUES('20260507164347_add_workspace_time',1795522333225);
INSERT INTO "migration" VALUES('20260510033149_session_usage',1795522333225);
INSERT INTO "migration" VALUES('20260511000411_data_migration_state',1795522333237);
INSERT INTO "migration" VALUES('20260511173437_session-metadata',1795522333238);
INSERT INTO "migration" VALUES('20260601010001_normalize_storage_paths',1795522333238);
INSERT INTO "migration" VALUES('20260601202201_amazing_prowler',1795522333238);
INSERT INTO "migration" VALUES('20260602002951_lowly_union_jack',1795522333240);
INSERT INTO "migration" VALUES('20260602182828_add_project_directories',1795522333240);
INSERT INTO "migration" VALUES('20260603001617_session_message_projection_indexes',1795522333240);
INSERT INTO "migration" VALUES('20260603040000_session_message_projection_order',1795522333240);
INSERT INTO "migration" VALUES('20260603141458_session_input_inbox',1795522333240);
INSERT INTO "migration" VALUES('20260603160727_jittery_ezekiel_stane',1795522333240);
INSERT INTO "migration" VALUES('20260604172448_event_sourced_session_input',1795522333240);
INSERT INTO "migration" VALUES('20260605003541_add_session_context_snapshot',1795522333240);
INSERT INTO "migration" VALUES('20260605042240_add_context_epoch_agent',1795522333240);
INSERT INTO "migration" VALUES('20260611035744_credential',1795522333240);
INSERT INTO "migration" VALUES('20260611192811_lush_chimera',1795522333240);
INSERT INTO "migration" VALUES('20260612174303_project_dir_strategy',1795522333240);
INSERT INTO "migration" VALUES('20260622142730_simplify_session_context_epoch',1795522333240);
INSERT INTO "migration" VALUES('20260622170816_reset_v2_session_state',1795522333240);
INSERT INTO "migration" VALUES('20260622202450_simplify_session_input',1795522333240);
INSERT INTO "migration" VALUES('20260714141136_session-message-legacy-writer-compat',1795522333241);
INSERT INTO "migration" VALUES('20260828074139_kilocode_board',1795522333241);
INSERT INTO "migration" VALUES('20260903104806_kilocode_board_reset',1795522333241);
INSERT INTO "migration" VALUES('20260907102000_kilocode_model_usage_index',1795522333241);
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO "part" VALUES('prt_20d78d8b1001cWQXln8Rn9QBMN','msg_20d78d871001edLW2Txt2sP5tb','ses_df28760a8ffeiNJPnYz1j9u4bA',1795522353337,1795522353342,'{"type":"text","text":"Ask a sub-agent"}');
INSERT INTO "part" VALUES('prt_20d78e69b0016yOwlwxrsWLyCa','msg_20d78e6930015OxAgNWjg79H46','ses_df2871975ffezFACCdSJUGt6Pm',1795522356893,1795522356893,'{"type":"text","text":"Count the files"}');
INSERT INTO "part" VALUES('prt_20d78e768001W06QJBBV43G616','msg_20d78e458001G3kfcSWJvVtmMp','ses_df28760a8ffeiNJPnYz1j9u4bA',1795522357096,1795522357098,'{"type":"step-start","time":{"start":1795522356839}}');
INSERT INTO "part" VALUES('prt_20d78e76c001rX15qNB266jBSh','msg_20d78e458001G3kfcSWJvVtmMp','ses_df28760a8ffeiNJPnYz1j9u4bA',1795522357100,1795522358807,'{"type":"tool","tool":"task","callID":"toolu_mock_0_0_0","state":{"status":"completed","input":{"description":"Sub-agent","prompt":"Count the files","subagent_type":"general"},"output":"<task id=\"ses_df2871975ffezFACCdSJUGt6Pm\" state=\"completed\">\n<task_result>\nThere are none.\n</task_result>\n</task>","metadata":{"parentSessionId":"ses_df28760a8ffeiNJPnYz1j9u4bA","sessionId":"ses_df2871975ffezFACCdSJUGt6Pm","model":{"modelID":"mock-model","providerID":"mock"},"truncated":false,"approval":{"source":"agent","agent":"code","rule":{"permission":"*","pattern":"*","action":"allow"}}},"title":"Sub-agent","time":{"start":1795522357104,"end":1795522358787}}}');
INSERT INTO "part" VALUES('prt_20d78eb10001OROb2pIYzJEBPt','msg_20d78e71d001hGXyjkKLUGxX5x','ses_df2871975ffezFACCdSJUGt6Pm',1795522358032,1795522358035,'{"type":"step-start","time":{"start":1795522357800}}');
INSERT INTO "part" VALUES('prt_20d78eb22001xkdvHraFxgszVH','msg_20d78e71d001hGXyjkKLUGxX5x','ses_df2871975ffezFACCdSJUGt6Pm',1795522358051,1795522358305,'{"type":"tool","tool":"bash","callID":"toolu_mock_agent0_0_0_0","state":{"status":"completed","input":{"command":"echo hi"},"output":"hi\n","metadata":{"output":"hi\n","exit":0,"description":"echo hi","truncated":false,"approval":{"source":"agent","agent":"general","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"title":"echo hi","time":{"start":1795522358064,"end":1795522358293}}}');
INSERT INTO "part" VALUES('prt_20d78ec54001AjqDXCddGDbfKj','msg_20d78e71d001hGXyjkKLUGxX5x','ses_df2871975ffezFACCdSJUGt6Pm',1795522358356,1795522358357,'{"reason":"tool-calls","type":"step-finish","time":{"start":1795522357800,"end":1795522358353,"elapsed":553},"metrics":{"generation":48.824593128390596,"source":"computed"},"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"cost":0.00414555}');
INSERT INTO "part" VALUES('prt_20d78ed47001RfsAFkhJUDBPYM','msg_20d78ec8e001fEgIkRDq0W64ea','ses_df2871975ffezFACCdSJUGt6Pm',1795522358599,1795522358600,'{"type":"step-start","time":{"start":1795522358579}}');
INSERT INTO "part" VALUES('prt_20d78ed4a001D8u8xmR8ROQuPm','msg_20d78ec8e001fEgIkRDq0W64ea','ses_df2871975ffezFACCdSJUGt6Pm',1795522358602,1795522358610,'{"type":"text","text":"There are none.","time":{"start":1795522358602,"end":1795522358605}}');
INSERT INTO "part" VALUES('prt_20d78ed7b001edAgBpnk7BwP7f','msg_20d78ec8e001fEgIkRDq0W64ea','ses_df2871975ffezFACCdSJUGt6Pm',1795522358651,1795522358652,'{"reason":"stop","type":"step-finish","time":{"start":1795522358579,"end":1795522358650,"elapsed":71},"metrics":{"generation":478.8732394366197,"source":"computed"},"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"write":76,"read":322}},"cost":0.0047136}');
INSERT INTO "part" VALUES('prt_20d78ee50001pcnKw9bleUSk03','msg_20d78e458001G3kfcSWJvVtmMp','ses_df28760a8ffeiNJPnYz1j9u4bA',1795522358864,1795522358865,'{"reason":"tool-calls","type":"step-finish","time":{"start":1795522356839,"end":1795522358863,"elapsed":2023},"metrics":{"generation":20.266930301532376,"source":"computed"},"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"write":89,"read":333}},"cost":0.00528165}');
INSERT INTO "part" VALUES('prt_20d78efce001Mqzp4gzVAnxf7V','msg_20d78ee8a001Q0aX7BBZOyKBHl','ses_df28760a8ffeiNJPnYz1j9u4bA',1795522359246,1795522359247,'{"type":"step-start","time":{"start":1795522359228}}');
INSERT INTO "part" VALUES('prt_20d78efd0001f1KXRBigvSu9nS','msg_20d78ee8a001Q0aX7BBZOyKBHl','ses_df28760a8ffeiNJPnYz1j9u4bA',1795522359248,1795522359251,'{"type":"text","text":"The sub-agent says none.","time":{"start":1795522359248,"end":1795522359251}}');
INSERT INTO "part" VALUES('prt_20d78eff3001nKHT33eqMbYqOU','msg_20d78ee8a001Q0aX7BBZOyKBHl','ses_df28760a8ffeiNJPnYz1j9u4bA',1795522359283,1795522359286,'{"reason":"stop","type":"step-finish","time":{"start":1795522359228,"end":1795522359281,"elapsed":54},"metrics":{"generation":888.8888888888889,"source":"computed"},"tokens":{"total":2042,"input":1548,"output":48,"reasoning":0,"cache":{"write":102,"read":344}},"cost":0.0058497}');
CREATE TABLE `permission` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `action` text NOT NULL,
          `resource` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          CONSTRAINT `fk_permission_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
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
INSERT INTO "project" VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795522335577,1795522335577,NULL,'[]',NULL);
CREATE TABLE `project_directory` (
          `project_id` text NOT NULL,
          `directory` text NOT NULL,
          `type` text,
          `strategy` text,
          `time_created` integer NOT NULL,
          CONSTRAINT `project_directory_pk` PRIMARY KEY(`project_id`, `directory`),
          CONSTRAINT `fk_project_directory_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
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
INSERT INTO "session" VALUES('ses_df28760a8ffeiNJPnYz1j9u4bA','global',NULL,NULL,'eager-eagle','/tmp/box/ws','tmp/box/ws','Ask a sub-agent','7.7.7',NULL,0,0,0,NULL,NULL,0.01113135,2959,89,0,677,191,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','code','{"id":"mock-model","providerID":"mock","variant":"default"}',1795522338647,1795522358914,NULL,NULL);
INSERT INTO "session" VALUES('ses_df2871975ffezFACCdSJUGt6Pm','global',NULL,'ses_df28760a8ffeiNJPnYz1j9u4bA','mighty-wizard','/tmp/box/ws','tmp/box/ws','Sub-agent (@general subagent)','7.7.7',NULL,0,0,0,NULL,NULL,0.00885915,2411,61,0,633,139,NULL,'[{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"repo_clone","action":"deny","pattern":"*"},{"permission":"question","action":"deny","pattern":"*"},{"permission":"task","action":"deny","pattern":"*"}]','general','{"id":"mock-model","providerID":"mock","variant":"default"}',1795522356874,1795522358708,NULL,NULL);
CREATE TABLE `session_context_epoch` (
          `session_id` text PRIMARY KEY,
          `baseline` text NOT NULL,
          `snapshot` text NOT NULL,
          `baseline_seq` integer NOT NULL, `agent` text DEFAULT 'build' NOT NULL, `replacement_seq` integer, `revision` integer DEFAULT 0 NOT NULL,
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
          `seq` integer,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_session_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
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
CREATE UNIQUE INDEX `event_aggregate_seq_idx` ON `event` (`aggregate_id`,`seq`);
CREATE INDEX `event_aggregate_type_seq_idx` ON `event` (`aggregate_id`,`type`,`seq`);
CREATE UNIQUE INDEX `kilo_board_message_board_seq_idx` ON `kilo_board_message` (`board_root_session_id`,`seq`);
CREATE UNIQUE INDEX `permission_project_action_resource_idx` ON `permission` (`project_id`,`action`,`resource`);
CREATE INDEX `message_session_time_created_id_idx` ON `message` (`session_id`,`time_created`,`id`);
CREATE INDEX `recall_message_role_idx` ON `message` (`id`,json_extract("data", '$.role'),coalesce(json_extract("data", '$.parentID'), ''));
CREATE INDEX `part_message_id_id_idx` ON `part` (`message_id`,`id`);
CREATE INDEX `part_session_idx` ON `part` (`session_id`);
CREATE INDEX `part_session_step_finish_idx` ON `part` (`session_id`) WHERE json_valid("part"."data") AND json_extract("part"."data", '$.type') = 'step-finish';
CREATE INDEX `recall_part_search_idx` ON `part` (`session_id`,`id`,`message_id`,json_extract("data", '$.type'),CASE WHEN json_extract("data", '$.type') = 'text' THEN coalesce(json_extract("data", '$.text'), '') WHEN json_extract("data", '$.type') = 'file' THEN trim(coalesce(json_extract("data", '$.filename'), '') || ' ' || CASE WHEN coalesce(json_extract("data", '$.url'), '') NOT LIKE 'data:%' THEN coalesce(json_extract("data", '$.url'), '') ELSE '' END || ' ' || coalesce(json_extract("data", '$.source.path'), '') || ' ' || coalesce(json_extract("data", '$.source.name'), '') || ' ' || CASE WHEN coalesce(json_extract("data", '$.source.uri'), '') NOT LIKE 'data:%' THEN coalesce(json_extract("data", '$.source.uri'), '') ELSE '' END || ' ' || coalesce(json_extract("data", '$.source.clientName'), '')) ELSE coalesce(json_extract("data", '$.state.error'), '') END) WHERE json_valid("part"."data") AND ((json_extract("part"."data", '$.type') = 'text' AND coalesce(json_extract("part"."data", '$.synthetic'), 0) = 0 AND coalesce(json_extract("part"."data", '$.ignored'), 0) = 0) OR json_extract("part"."data", '$.type') = 'file' OR (json_extract("part"."data", '$.type') = 'tool' AND json_extract("part"."data", '$.state.status') = 'error'));
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
