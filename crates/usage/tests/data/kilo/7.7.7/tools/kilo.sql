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
INSERT INTO "event" VALUES('evt_20d76fc13001OMd0d0PVB4ddT4','ses_df289040cffeF3SpyDUcLnJfZy',0,'session.created.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"ses_df289040cffeF3SpyDUcLnJfZy","slug":"cosmic-island","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Say hi","version":"7.7.7","time":{"created":1795522231283,"updated":1795522231283},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d773cc8001550dYKFjWQIJ2J','ses_df289040cffeF3SpyDUcLnJfZy',1,'session.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"ses_df289040cffeF3SpyDUcLnJfZy","slug":"cosmic-island","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Say hi","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522231283,"updated":1795522247878},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d773d3d001mqQqnemZB1OAr3','ses_df289040cffeF3SpyDUcLnJfZy',2,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d773cc6001c4SQaXYHNt1clL","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"user","time":{"created":1795522247878},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d773d43001o84LoKSPjQIB3s','ses_df289040cffeF3SpyDUcLnJfZy',3,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d773d3b001hdEzyx52wDFy71","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d773cc6001c4SQaXYHNt1clL","type":"text","text":"Say hi"},"time":1795522248003}');
INSERT INTO "event" VALUES('evt_20d773d55001er9llB33x1XmKC','ses_df289040cffeF3SpyDUcLnJfZy',4,'session.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"ses_df289040cffeF3SpyDUcLnJfZy","slug":"cosmic-island","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Say hi","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522231283,"updated":1795522248020},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d7749530016Sg4ELZn6lYx2b','ses_df289040cffeF3SpyDUcLnJfZy',5,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d774953001RMVdEInX7II2yY","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"assistant","time":{"created":1795522251091},"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d774c1d001rpQi5aDmb1zcUy','ses_df289040cffeF3SpyDUcLnJfZy',6,'session.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"ses_df289040cffeF3SpyDUcLnJfZy","slug":"cosmic-island","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Say hi","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522231283,"updated":1795522251804},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d774c2c0014ZU4gns5pFxsx4','ses_df289040cffeF3SpyDUcLnJfZy',7,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d773cc6001c4SQaXYHNt1clL","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"user","time":{"created":1795522247878},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d774d6f0016gCGELgVL0Awnh','ses_df289040cffeF3SpyDUcLnJfZy',8,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d774d6e001KuGrWpaXmnXMnh","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d774953001RMVdEInX7II2yY","type":"step-start"},"time":1795522252143}');
INSERT INTO "event" VALUES('evt_20d774e4a001hRaKZvpFZ9clXU','ses_df289040cffeF3SpyDUcLnJfZy',9,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d774e4a001kAOt1bYdyKUX1F","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d774953001RMVdEInX7II2yY","type":"tool","callID":"toolu_mock_0_0_0","tool":"bash","state":{"status":"pending","input":{},"raw":""}},"time":1795522252362}');
INSERT INTO "event" VALUES('evt_20d774e9c001B5EjKZ1MopE4gm','ses_df289040cffeF3SpyDUcLnJfZy',10,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d774e4a001kAOt1bYdyKUX1F","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d774953001RMVdEInX7II2yY","type":"tool","callID":"toolu_mock_0_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"time":{"start":1795522252444}}},"time":1795522252444}');
INSERT INTO "event" VALUES('evt_20d774fca001Ih1O6kZjvgah7O','ses_df289040cffeF3SpyDUcLnJfZy',11,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d774e4a001kAOt1bYdyKUX1F","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d774953001RMVdEInX7II2yY","type":"tool","callID":"toolu_mock_0_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522252444}}},"time":1795522252739}');
INSERT INTO "event" VALUES('evt_20d775103001FDfaFtwZxqp2wG','ses_df289040cffeF3SpyDUcLnJfZy',12,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d774e4a001kAOt1bYdyKUX1F","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d774953001RMVdEInX7II2yY","type":"tool","callID":"toolu_mock_0_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"output":"","approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522252444}}},"time":1795522253058}');
INSERT INTO "event" VALUES('evt_20d77527f001BpQQJrmMNWX6jP','ses_df289040cffeF3SpyDUcLnJfZy',13,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d774e4a001kAOt1bYdyKUX1F","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d774953001RMVdEInX7II2yY","type":"tool","callID":"toolu_mock_0_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"output":"hi\n","approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522252444}}},"time":1795522253411}');
INSERT INTO "event" VALUES('evt_20d7753780015aTXWZUM2jRSca','ses_df289040cffeF3SpyDUcLnJfZy',14,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d774e4a001kAOt1bYdyKUX1F","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d774953001RMVdEInX7II2yY","type":"tool","callID":"toolu_mock_0_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"output":"hi\n","approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522252444}}},"time":1795522253688}');
INSERT INTO "event" VALUES('evt_20d77545c00116g022nCeD3LWI','ses_df289040cffeF3SpyDUcLnJfZy',15,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d774e4a001kAOt1bYdyKUX1F","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d774953001RMVdEInX7II2yY","type":"tool","callID":"toolu_mock_0_0_0","tool":"bash","state":{"status":"completed","input":{"command":"echo hi"},"output":"hi\n","title":"echo hi","metadata":{"output":"hi\n","exit":0,"description":"echo hi","truncated":false,"approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522252444,"end":1795522253915}}},"time":1795522253916}');
INSERT INTO "event" VALUES('evt_20d7755b7001rtHzTV0k0lq4P0','ses_df289040cffeF3SpyDUcLnJfZy',16,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d7755b60016jfrBj8toakzAT","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d774953001RMVdEInX7II2yY","type":"step-finish","reason":"tool-calls","metrics":{"generation":11.790393013100436,"source":"computed"},"time":{"start":1795522251946,"end":1795522254235,"elapsed":2290},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}}},"time":1795522254263}');
INSERT INTO "event" VALUES('evt_20d7755c40012W13rXIeb2E7Ww','ses_df289040cffeF3SpyDUcLnJfZy',17,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d774953001RMVdEInX7II2yY","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"assistant","time":{"created":1795522251091},"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"tool-calls"}}');
INSERT INTO "event" VALUES('evt_20d7755fe001ynsh3Rw8cMCyWc','ses_df289040cffeF3SpyDUcLnJfZy',18,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d774953001RMVdEInX7II2yY","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"assistant","time":{"created":1795522251091,"completed":1795522254327},"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"tool-calls"}}');
INSERT INTO "event" VALUES('evt_20d775624001oCzisHGycoez89','ses_df289040cffeF3SpyDUcLnJfZy',19,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d775624001NQU45ILE3vEmBL","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"assistant","time":{"created":1795522254372},"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d7756d1001pFDXSRX4IiUCRq','ses_df289040cffeF3SpyDUcLnJfZy',20,'session.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"ses_df289040cffeF3SpyDUcLnJfZy","slug":"cosmic-island","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00414555,"tokens":{"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"title":"Say hi","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522231283,"updated":1795522254543},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d7756d8002vBM24oOxPzsLT1','ses_df289040cffeF3SpyDUcLnJfZy',21,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d773cc6001c4SQaXYHNt1clL","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"user","time":{"created":1795522247878},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d775930001Wileis9tn57L5Y','ses_df289040cffeF3SpyDUcLnJfZy',22,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d775930001YqPhcSNl9CalLy","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775624001NQU45ILE3vEmBL","type":"step-start"},"time":1795522255152}');
INSERT INTO "event" VALUES('evt_20d77593a001LnkkNzMIgPOJCH','ses_df289040cffeF3SpyDUcLnJfZy',23,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d77593a001PgC9HcfHrj2tuS","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775624001NQU45ILE3vEmBL","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"pending","input":{},"raw":""}},"time":1795522255162}');
INSERT INTO "event" VALUES('evt_20d77594a001IfbTTKUp4xbrr6','ses_df289040cffeF3SpyDUcLnJfZy',24,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d77593a001PgC9HcfHrj2tuS","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775624001NQU45ILE3vEmBL","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo two"},"metadata":{"output":"","approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522255178}}},"time":1795522255178}');
INSERT INTO "event" VALUES('evt_20d7759860011adthIK70XU7xK','ses_df289040cffeF3SpyDUcLnJfZy',25,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d77593a001PgC9HcfHrj2tuS","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775624001NQU45ILE3vEmBL","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo two"},"metadata":{"output":"two\n","approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522255178}}},"time":1795522255233}');
INSERT INTO "event" VALUES('evt_20d7759b70016ifd6oOOCl2XSR','ses_df289040cffeF3SpyDUcLnJfZy',26,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d77593a001PgC9HcfHrj2tuS","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775624001NQU45ILE3vEmBL","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo two"},"metadata":{"output":"two\n","approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522255178}}},"time":1795522255287}');
INSERT INTO "event" VALUES('evt_20d7759dc001IRzkmcjTIbDObb','ses_df289040cffeF3SpyDUcLnJfZy',27,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d77593a001PgC9HcfHrj2tuS","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775624001NQU45ILE3vEmBL","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"completed","input":{"command":"echo two"},"output":"two\n","title":"echo two","metadata":{"output":"two\n","exit":0,"description":"echo two","truncated":false,"approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522255178,"end":1795522255324}}},"time":1795522255324}');
INSERT INTO "event" VALUES('evt_20d775a000010JWCkrcY1KXr7w','ses_df289040cffeF3SpyDUcLnJfZy',28,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d775a00001l1j8rPJ1Ntbn3b","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775624001NQU45ILE3vEmBL","type":"step-finish","reason":"tool-calls","metrics":{"generation":113.33333333333333,"source":"computed"},"time":{"start":1795522255058,"end":1795522255359,"elapsed":300},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}}},"time":1795522255360}');
INSERT INTO "event" VALUES('evt_20d775a03001bJ2978scbBW7SA','ses_df289040cffeF3SpyDUcLnJfZy',29,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d775624001NQU45ILE3vEmBL","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"assistant","time":{"created":1795522254372},"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}},"finish":"tool-calls"}}');
INSERT INTO "event" VALUES('evt_20d775a07001106dDTgZytjFdO','ses_df289040cffeF3SpyDUcLnJfZy',30,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d775624001NQU45ILE3vEmBL","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"assistant","time":{"created":1795522254372,"completed":1795522255366},"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}},"finish":"tool-calls"}}');
INSERT INTO "event" VALUES('evt_20d775a0c001xFz7ZyWbeO9hkz','ses_df289040cffeF3SpyDUcLnJfZy',31,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d775a0c0013zyI768rhER8j6","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"assistant","time":{"created":1795522255372},"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d775a44001277CuKjb8k3FD1','ses_df289040cffeF3SpyDUcLnJfZy',32,'session.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"ses_df289040cffeF3SpyDUcLnJfZy","slug":"cosmic-island","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00885915,"tokens":{"input":2411,"output":61,"reasoning":0,"cache":{"read":633,"write":139}},"title":"Say hi","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522231283,"updated":1795522255427},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d775a5c002yjtn1GztIdQtLV','ses_df289040cffeF3SpyDUcLnJfZy',33,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d773cc6001c4SQaXYHNt1clL","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"user","time":{"created":1795522247878},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d775c1f001pVOWM4lJuIPJrT','ses_df289040cffeF3SpyDUcLnJfZy',34,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d775c1e001Q8TC5CD90Nnrty","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775a0c0013zyI768rhER8j6","type":"step-start"},"time":1795522255903}');
INSERT INTO "event" VALUES('evt_20d775c29001PeKAxNh1DeI4Wb','ses_df289040cffeF3SpyDUcLnJfZy',35,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d775c280012KGie7QCZYKUTF","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775a0c0013zyI768rhER8j6","type":"text","text":"","time":{"start":1795522255913}},"time":1795522255913}');
INSERT INTO "event" VALUES('evt_20d775c2d001wdKDsKqQHtg53c','ses_df289040cffeF3SpyDUcLnJfZy',36,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d775c280012KGie7QCZYKUTF","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775a0c0013zyI768rhER8j6","type":"text","text":"Done.","time":{"start":1795522255913,"end":1795522255917}},"time":1795522255917}');
INSERT INTO "event" VALUES('evt_20d775cc0001zEJ6zjkie6gx3T','ses_df289040cffeF3SpyDUcLnJfZy',37,'message.part.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","part":{"id":"prt_20d775cc0001I9CAUXVH6mB8x7","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","messageID":"msg_20d775a0c0013zyI768rhER8j6","type":"step-finish","reason":"stop","metrics":{"generation":78.9980732177264,"source":"computed"},"time":{"start":1795522255544,"end":1795522256062,"elapsed":519},"cost":0.00528165,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"read":333,"write":89}}},"time":1795522256064}');
INSERT INTO "event" VALUES('evt_20d775cc3001P7LfTJCkAn3HGN','ses_df289040cffeF3SpyDUcLnJfZy',38,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d775a0c0013zyI768rhER8j6","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"assistant","time":{"created":1795522255372},"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00528165,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"read":333,"write":89}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d775ccd001HVRds3Iv4YfcPi','ses_df289040cffeF3SpyDUcLnJfZy',39,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d775a0c0013zyI768rhER8j6","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"assistant","time":{"created":1795522255372,"completed":1795522256076},"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00528165,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"read":333,"write":89}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d775ee80014cOFLtVnOrJILM','ses_df289040cffeF3SpyDUcLnJfZy',40,'session.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"ses_df289040cffeF3SpyDUcLnJfZy","slug":"cosmic-island","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.014140799999999999,"tokens":{"input":3822,"output":102,"reasoning":0,"cache":{"read":966,"write":228}},"title":"Say hi","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522231283,"updated":1795522256615},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d775eeb002upMLX8EbsGZ1fH','ses_df289040cffeF3SpyDUcLnJfZy',41,'message.updated.1','{"sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","info":{"id":"msg_20d773cc6001c4SQaXYHNt1clL","sessionID":"ses_df289040cffeF3SpyDUcLnJfZy","role":"user","time":{"created":1795522247878},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
CREATE TABLE `event_sequence` (
          `aggregate_id` text PRIMARY KEY,
          `seq` integer NOT NULL,
          `owner_id` text
        );
INSERT INTO "event_sequence" VALUES('ses_df289040cffeF3SpyDUcLnJfZy',41,NULL);
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
INSERT INTO "kilo_board" VALUES('ses_df289040cffeF3SpyDUcLnJfZy','Say hi','msg_20d773cc6001c4SQaXYHNt1clL',1,0,0,0,1795522253897,1795522253897);
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
INSERT INTO "message" VALUES('msg_20d773cc6001c4SQaXYHNt1clL','ses_df289040cffeF3SpyDUcLnJfZy',1795522247878,1795522256620,'{"role":"user","time":{"created":1795522247878},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_20d774953001RMVdEInX7II2yY','ses_df289040cffeF3SpyDUcLnJfZy',1795522251091,1795522254335,'{"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522251091,"completed":1795522254327},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_20d775624001NQU45ILE3vEmBL','ses_df289040cffeF3SpyDUcLnJfZy',1795522254372,1795522255367,'{"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"write":76,"read":322}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522254372,"completed":1795522255366},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_20d775a0c0013zyI768rhER8j6','ses_df289040cffeF3SpyDUcLnJfZy',1795522255372,1795522256078,'{"parentID":"msg_20d773cc6001c4SQaXYHNt1clL","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00528165,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"write":89,"read":333}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522255372,"completed":1795522256076},"finish":"stop"}');
CREATE TABLE "migration" (id TEXT PRIMARY KEY, time_completed INTEGER NOT NULL);
INSERT INTO "migration" VALUES('20260127222353_familiar_lady_ursula',1795522227112);
INSERT INTO "migration" VALUES('20260211171708_add_project_commands',1795522227113);
INSERT INTO "migration" VALUES('20260213144116_wakeful_the_professor',1795522227113);
INSERT INTO "migration" VALUES('20260225215848_workspace',1795522227113);
INSERT INTO "migration" VALUES('20260227213759_add_session_workspace_id',1795522227113);
INSERT INTO "migration" VALUES('20260228203230_blue_harpoon',1795522227113);
INSERT INTO "migration" VALUES('20260303231226_add_workspace_fields',1795522227113);
INSERT INTO "migration" VALUES('20260309230000_move_org_to_state',1795522227113);
INSERT INTO "migration" VALUES('20260312043431_session_message_cursor',1795522227113);
INSERT INTO "migration" VALUES('20260323234822_events',1795522227113);
INSERT INTO "migration" VALUES('20260410174513_workspace-name',1795522227113);
INSERT INTO "migration" VALUES('20260413175956_chief_energizer',1795522227113);
INSERT INTO "migration" VALUES('20260423070820_add_icon_url_override',1795522227113);
INSERT INTO "migration" VALUES('20260427172553_slow_nightmare',1795522227113);
INSERT INTO "migration" VALUES('20260428004200_add_session_path',1795522227117);
INSERT INTO "migration" VALUES('20260501142318_next_venus',1795522227118);
INSERT INTO "migration" VALUES('20260504145000_add_sync_owner',1795522227118);
INSERT INTO "migration" VALUES('20260507164347_add_workspace_time',1795522227118);
INSERT INTO "migration" VALUES('20260510033149_session_usage',1795522227118);
INSERT INTO "migration" VALUES('20260511000411_data_migration_state',1795522227118);
INSERT INTO "migration" VALUES('20260511173437_session-metadata',1795522227118);
INSERT INTO "migration" VALUES('20260601010001_normalize_storage_paths',1795522227118);
INSERT INTO "migration" VALUES('20260601202201_amazing_prowler',1795522227118);
INSERT INTO "migration" VALUES('20260602002951_lowly_union_jack',1795522227119);
INSERT INTO "migration" VALUES('20260602182828_add_project_directories',1795522227119);
INSERT INTO "migration" VALUES('20260603001617_session_message_projection_indexes',1795522227119);
INSERT INTO "migration" VALUES('20260603040000_session_message_projection_order',1795522227119);
INSERT INTO "migration" VALUES('20260603141458_session_input_inbox',1795522227119);
INSERT INTO "migration" VALUES('20260603160727_jittery_ezekiel_stane',1795522227120);
INSERT INTO "migration" VALUES('20260604172448_event_sourced_session_input',1795522227120);
INSERT INTO "migration" VALUES('20260605003541_add_session_context_snapshot',1795522227120);
INSERT INTO "migration" VALUES('20260605042240_add_context_epoch_agent',1795522227120);
INSERT INTO "migration" VALUES('20260611035744_credential',1795522227120);
INSERT INTO "migration" VALUES('20260611192811_lush_chimera',1795522227120);
INSERT INTO "migration" VALUES('20260612174303_project_dir_strategy',1795522227120);
INSERT INTO "migration" VALUES('20260622142730_simplify_session_context_epoch',1795522227120);
INSERT INTO "migration" VALUES('20260622170816_reset_v2_session_state',1795522227120);
INSERT INTO "migration" VALUES('20260622202450_simplify_session_input',1795522227120);
INSERT INTO "migration" VALUES('20260714141136_session-message-legacy-writer-compat',1795522227120);
INSERT INTO "migration" VALUES('20260828074139_kilocode_board',1795522227120);
INSERT INTO "migration" VALUES('20260903104806_kilocode_board_reset',1795522227121);
INSERT INTO "migration" VALUES('20260907102000_kilocode_model_usage_index',1795522227121);
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO "part" VALUES('prt_20d773d3b001hdEzyx52wDFy71','msg_20d773cc6001c4SQaXYHNt1clL','ses_df289040cffeF3SpyDUcLnJfZy',1795522248003,1795522248005,'{"type":"text","text":"Say hi"}');
INSERT INTO "part" VALUES('prt_20d774d6e001KuGrWpaXmnXMnh','msg_20d774953001RMVdEInX7II2yY','ses_df289040cffeF3SpyDUcLnJfZy',1795522252143,1795522252163,'{"type":"step-start","time":{"start":1795522251946}}');
INSERT INTO "part" VALUES('prt_20d774e4a001kAOt1bYdyKUX1F','msg_20d774953001RMVdEInX7II2yY','ses_df289040cffeF3SpyDUcLnJfZy',1795522252362,1795522253917,'{"type":"tool","tool":"bash","callID":"toolu_mock_0_0_0","state":{"status":"completed","input":{"command":"echo hi"},"output":"hi\n","metadata":{"output":"hi\n","exit":0,"description":"echo hi","truncated":false,"approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"title":"echo hi","time":{"start":1795522252444,"end":1795522253915}}}');
INSERT INTO "part" VALUES('prt_20d7755b60016jfrBj8toakzAT','msg_20d774953001RMVdEInX7II2yY','ses_df289040cffeF3SpyDUcLnJfZy',1795522254263,1795522254264,'{"reason":"tool-calls","type":"step-finish","time":{"start":1795522251946,"end":1795522254235,"elapsed":2290},"metrics":{"generation":11.790393013100436,"source":"computed"},"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"cost":0.00414555}');
INSERT INTO "part" VALUES('prt_20d775930001YqPhcSNl9CalLy','msg_20d775624001NQU45ILE3vEmBL','ses_df289040cffeF3SpyDUcLnJfZy',1795522255152,1795522255153,'{"type":"step-start","time":{"start":1795522255058}}');
INSERT INTO "part" VALUES('prt_20d77593a001PgC9HcfHrj2tuS','msg_20d775624001NQU45ILE3vEmBL','ses_df289040cffeF3SpyDUcLnJfZy',1795522255162,1795522255325,'{"type":"tool","tool":"bash","callID":"toolu_mock_1_0_0","state":{"status":"completed","input":{"command":"echo two"},"output":"two\n","metadata":{"output":"two\n","exit":0,"description":"echo two","truncated":false,"approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"title":"echo two","time":{"start":1795522255178,"end":1795522255324}}}');
INSERT INTO "part" VALUES('prt_20d775a00001l1j8rPJ1Ntbn3b','msg_20d775624001NQU45ILE3vEmBL','ses_df289040cffeF3SpyDUcLnJfZy',1795522255360,1795522255361,'{"reason":"tool-calls","type":"step-finish","time":{"start":1795522255058,"end":1795522255359,"elapsed":300},"metrics":{"generation":113.33333333333333,"source":"computed"},"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"write":76,"read":322}},"cost":0.0047136}');
INSERT INTO "part" VALUES('prt_20d775c1e001Q8TC5CD90Nnrty','msg_20d775a0c0013zyI768rhER8j6','ses_df289040cffeF3SpyDUcLnJfZy',1795522255903,1795522255905,'{"type":"step-start","time":{"start":1795522255544}}');
INSERT INTO "part" VALUES('prt_20d775c280012KGie7QCZYKUTF','msg_20d775a0c0013zyI768rhER8j6','ses_df289040cffeF3SpyDUcLnJfZy',1795522255913,1795522255928,'{"type":"text","text":"Done.","time":{"start":1795522255913,"end":1795522255917}}');
INSERT INTO "part" VALUES('prt_20d775cc0001I9CAUXVH6mB8x7','msg_20d775a0c0013zyI768rhER8j6','ses_df289040cffeF3SpyDUcLnJfZy',1795522256064,1795522256065,'{"reason":"stop","type":"step-finish","time":{"start":1795522255544,"end":1795522256062,"elapsed":519},"metrics":{"generation":78.9980732177264,"source":"computed"},"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"write":89,"read":333}},"cost":0.00528165}');
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
INSERT INTO "project" VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795522228809,1795522228809,NULL,'[]',NULL);
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
INSERT INTO "session" VALUES('ses_df289040cffeF3SpyDUcLnJfZy','global',NULL,NULL,'cosmic-island','/tmp/box/ws','tmp/box/ws','Say hi','7.7.7',NULL,0,0,0,NULL,NULL,1.41407999999999985096e-02,3822,102,0,966,228,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','code','{"id":"mock-model","providerID":"mock","variant":"default"}',1795522231283,1795522256615,NULL,NULL);
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
