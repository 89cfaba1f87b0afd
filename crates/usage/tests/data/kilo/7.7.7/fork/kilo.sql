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
INSERT INTO "event" VALUES('evt_20d791c4c001jVFN57GeFJR5H1','ses_df286e3b5ffeQeLmsYJCAxXffb',0,'session.created.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"ses_df286e3b5ffeQeLmsYJCAxXffb","slug":"crisp-otter","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"First","version":"7.7.7","time":{"created":1795522370634,"updated":1795522370634},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d795486001LhzoP2qJgmI5ao','ses_df286e3b5ffeQeLmsYJCAxXffb',1,'session.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"ses_df286e3b5ffeQeLmsYJCAxXffb","slug":"crisp-otter","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522370634,"updated":1795522385020},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d79554a001pAFZ8GYiDGBeEX','ses_df286e3b5ffeQeLmsYJCAxXffb',2,'message.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"msg_20d79547c001LiGfAnC6nF4iEt","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","role":"user","time":{"created":1795522385020},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d79554e001xtx2GXhcyTl1W0','ses_df286e3b5ffeQeLmsYJCAxXffb',3,'message.part.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","part":{"id":"prt_20d7955490012Q30Bq3CDKDN7L","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","messageID":"msg_20d79547c001LiGfAnC6nF4iEt","type":"text","text":"First"},"time":1795522385230}');
INSERT INTO "event" VALUES('evt_20d795553001J5eFCQh2BQHmpx','ses_df286e3b5ffeQeLmsYJCAxXffb',4,'session.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"ses_df286e3b5ffeQeLmsYJCAxXffb","slug":"crisp-otter","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522370634,"updated":1795522385233},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d7961ea001e5GHzVJz2cGgXL','ses_df286e3b5ffeQeLmsYJCAxXffb',5,'message.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"msg_20d7961ea001Gda3lHgeFTuVeS","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","role":"assistant","time":{"created":1795522388458},"parentID":"msg_20d79547c001LiGfAnC6nF4iEt","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d79634d001rSFeym86HAfwDm','ses_df286e3b5ffeQeLmsYJCAxXffb',6,'session.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"ses_df286e3b5ffeQeLmsYJCAxXffb","slug":"crisp-otter","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522370634,"updated":1795522388812},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d796357002Vx3QGwXYC5yltF','ses_df286e3b5ffeQeLmsYJCAxXffb',7,'message.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"msg_20d79547c001LiGfAnC6nF4iEt","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","role":"user","time":{"created":1795522385020},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d79638b001mVE0xtbE5Lzycw','ses_df286e3b5ffeQeLmsYJCAxXffb',8,'message.part.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","part":{"id":"prt_20d79638a001MalG61iZHzaOM1","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","messageID":"msg_20d7961ea001Gda3lHgeFTuVeS","type":"step-start"},"time":1795522388874}');
INSERT INTO "event" VALUES('evt_20d796392001XKx7cvnefKTl1O','ses_df286e3b5ffeQeLmsYJCAxXffb',9,'message.part.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","part":{"id":"prt_20d7963920016gERcTJN6GAozb","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","messageID":"msg_20d7961ea001Gda3lHgeFTuVeS","type":"text","text":"","time":{"start":1795522388882}},"time":1795522388882}');
INSERT INTO "event" VALUES('evt_20d796396001cRnLW4jG1Naj6x','ses_df286e3b5ffeQeLmsYJCAxXffb',10,'message.part.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","part":{"id":"prt_20d7963920016gERcTJN6GAozb","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","messageID":"msg_20d7961ea001Gda3lHgeFTuVeS","type":"text","text":"One.","time":{"start":1795522388882,"end":1795522388886}},"time":1795522388886}');
INSERT INTO "event" VALUES('evt_20d7963cc001mCP41UVm5WC6Kk','ses_df286e3b5ffeQeLmsYJCAxXffb',11,'message.part.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","part":{"id":"prt_20d7963cb0017zrePCO6X43NUW","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","messageID":"msg_20d7961ea001Gda3lHgeFTuVeS","type":"step-finish","reason":"stop","metrics":{"generation":195.65217391304347,"source":"computed"},"time":{"start":1795522388799,"end":1795522388937,"elapsed":138},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}}},"time":1795522388940}');
INSERT INTO "event" VALUES('evt_20d7963d00014rq7VY7EJTdSPN','ses_df286e3b5ffeQeLmsYJCAxXffb',12,'message.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"msg_20d7961ea001Gda3lHgeFTuVeS","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","role":"assistant","time":{"created":1795522388458},"parentID":"msg_20d79547c001LiGfAnC6nF4iEt","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d796401001hP04Z3vXharbOq','ses_df286e3b5ffeQeLmsYJCAxXffb',13,'message.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"msg_20d7961ea001Gda3lHgeFTuVeS","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","role":"assistant","time":{"created":1795522388458,"completed":1795522388993},"parentID":"msg_20d79547c001LiGfAnC6nF4iEt","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d79643b001PLbumskHRmRaV2','ses_df286e3b5ffeQeLmsYJCAxXffb',14,'session.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"ses_df286e3b5ffeQeLmsYJCAxXffb","slug":"crisp-otter","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00414555,"tokens":{"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522370634,"updated":1795522389051},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d79644f001ssiqErJ0Z57DcE','ses_df286e3b5ffeQeLmsYJCAxXffb',15,'message.updated.1','{"sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","info":{"id":"msg_20d79547c001LiGfAnC6nF4iEt","sessionID":"ses_df286e3b5ffeQeLmsYJCAxXffb","role":"user","time":{"created":1795522385020},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d7995da001Z3PcR26pc6gjIq','ses_df2866b6fffeYKrk7GP2KyMA33',0,'session.created.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"ses_df2866b6fffeYKrk7GP2KyMA33","slug":"calm-star","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"First (fork #1)","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522401424,"updated":1795522401424}}}');
INSERT INTO "event" VALUES('evt_20d799612001MfEkt03hXt9lxu','ses_df2866b6fffeYKrk7GP2KyMA33',1,'message.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"msg_20d7995f3001bFrbRfwR758yHE","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","role":"user","time":{"created":1795522385020},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d799615001Vicewp4cHXtthh','ses_df2866b6fffeYKrk7GP2KyMA33',2,'message.part.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","part":{"id":"prt_20d7995f3002oISSFVbsTxhCTL","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","messageID":"msg_20d7995f3001bFrbRfwR758yHE","type":"text","text":"First"},"time":1795522401779}');
INSERT INTO "event" VALUES('evt_20d79961e001th28l4fAhvMF3J','ses_df2866b6fffeYKrk7GP2KyMA33',3,'message.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"msg_20d7995f3003JJlKuXQPCXFnLa","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","role":"assistant","time":{"created":1795522388458,"completed":1795522388993},"parentID":"msg_20d7995f3001bFrbRfwR758yHE","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d79961f001kaqBU7oUUpFq1e','ses_df2866b6fffeYKrk7GP2KyMA33',4,'message.part.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","part":{"id":"prt_20d7995f3004n79zNNdu3s8u08","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","messageID":"msg_20d7995f3003JJlKuXQPCXFnLa","type":"step-start"},"time":1795522401779}');
INSERT INTO "event" VALUES('evt_20d799620001HdzdQuxI2GczwP','ses_df2866b6fffeYKrk7GP2KyMA33',5,'message.part.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","part":{"id":"prt_20d7995f3005hlhPrxPKuVbp6P","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","messageID":"msg_20d7995f3003JJlKuXQPCXFnLa","type":"text","text":"One.","time":{"start":1795522388882,"end":1795522388886}},"time":1795522401779}');
INSERT INTO "event" VALUES('evt_20d799637001rIeSf8rvkOzmL0','ses_df2866b6fffeYKrk7GP2KyMA33',6,'message.part.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","part":{"id":"prt_20d7995f3006X34hG43aZIpfgi","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","messageID":"msg_20d7995f3003JJlKuXQPCXFnLa","type":"step-finish","reason":"stop","metrics":{"generation":195.65217391304347,"source":"computed"},"time":{"start":1795522388799,"end":1795522388937,"elapsed":138},"cost":0,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}}},"time":1795522401779}');
INSERT INTO "event" VALUES('evt_20d79d8be001Oh30M4qMRRtjmK','ses_df2866b6fffeYKrk7GP2KyMA33',7,'session.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"ses_df2866b6fffeYKrk7GP2KyMA33","slug":"calm-star","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"title":"First (fork #1)","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522401424,"updated":1795522418875}}}');
INSERT INTO "event" VALUES('evt_20d79d8eb00193qrS8399wIfCg','ses_df2866b6fffeYKrk7GP2KyMA33',8,'message.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"msg_20d79d8bb001Q7arcgMZMv6FzR","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","role":"user","time":{"created":1795522418875},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d79d8f0001LhiZOC05t33jNp','ses_df2866b6fffeYKrk7GP2KyMA33',9,'message.part.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","part":{"id":"prt_20d79d8ea001ab23gknfbU2z12","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","messageID":"msg_20d79d8bb001Q7arcgMZMv6FzR","type":"text","text":"Second"},"time":1795522418928}');
INSERT INTO "event" VALUES('evt_20d79d90f001Dj2PI2KXbyGqfI','ses_df2866b6fffeYKrk7GP2KyMA33',10,'session.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"ses_df2866b6fffeYKrk7GP2KyMA33","slug":"calm-star","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"title":"First (fork #1)","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522401424,"updated":1795522418944}}}');
INSERT INTO "event" VALUES('evt_20d79dac0001Jwl7kq0kFvDh3I','ses_df2866b6fffeYKrk7GP2KyMA33',11,'message.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"msg_20d79dac0001G7CFaJXcHhlCLt","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","role":"assistant","time":{"created":1795522419392},"parentID":"msg_20d79d8bb001Q7arcgMZMv6FzR","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d79dc01001KLKlkkaEz8wkHV','ses_df2866b6fffeYKrk7GP2KyMA33',12,'session.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"ses_df2866b6fffeYKrk7GP2KyMA33","slug":"calm-star","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"title":"First (fork #1)","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522401424,"updated":1795522419712}}}');
INSERT INTO "event" VALUES('evt_20d79dc080025Xlc43bz6N1jeT','ses_df2866b6fffeYKrk7GP2KyMA33',13,'message.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"msg_20d79d8bb001Q7arcgMZMv6FzR","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","role":"user","time":{"created":1795522418875},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d79dd5d001ZPCE4eTNl72eDO','ses_df2866b6fffeYKrk7GP2KyMA33',14,'message.part.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","part":{"id":"prt_20d79dd58001YRwpjvZjHxsnB3","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","messageID":"msg_20d79dac0001G7CFaJXcHhlCLt","type":"step-start"},"time":1795522420056}');
INSERT INTO "event" VALUES('evt_20d79ddc6001k57z1zteAodomQ','ses_df2866b6fffeYKrk7GP2KyMA33',15,'message.part.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","part":{"id":"prt_20d79ddc6001L6dUdF5yR8mDY3","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","messageID":"msg_20d79dac0001G7CFaJXcHhlCLt","type":"text","text":"","time":{"start":1795522420166}},"time":1795522420166}');
INSERT INTO "event" VALUES('evt_20d79ddd4001FYFuMqHlIhScM9','ses_df2866b6fffeYKrk7GP2KyMA33',16,'message.part.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","part":{"id":"prt_20d79ddc6001L6dUdF5yR8mDY3","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","messageID":"msg_20d79dac0001G7CFaJXcHhlCLt","type":"text","text":"Two.","time":{"start":1795522420166,"end":1795522420180}},"time":1795522420180}');
INSERT INTO "event" VALUES('evt_20d79de1b001U0AOblVkLWXEWQ','ses_df2866b6fffeYKrk7GP2KyMA33',17,'message.part.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","part":{"id":"prt_20d79de1a001o3EVLZOUwamhKQ","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","messageID":"msg_20d79dac0001G7CFaJXcHhlCLt","type":"step-finish","reason":"stop","metrics":{"generation":156.6820276497696,"source":"computed"},"time":{"start":1795522420032,"end":1795522420249,"elapsed":217},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}}},"time":1795522420251}');
INSERT INTO "event" VALUES('evt_20d79de1e001wlAEqarIYoL1IT','ses_df2866b6fffeYKrk7GP2KyMA33',18,'message.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"msg_20d79dac0001G7CFaJXcHhlCLt","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","role":"assistant","time":{"created":1795522419392},"parentID":"msg_20d79d8bb001Q7arcgMZMv6FzR","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d79de25001qVUI16J5x66GS9','ses_df2866b6fffeYKrk7GP2KyMA33',19,'message.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"msg_20d79dac0001G7CFaJXcHhlCLt","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","role":"assistant","time":{"created":1795522419392,"completed":1795522420261},"parentID":"msg_20d79d8bb001Q7arcgMZMv6FzR","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d79e02d001dt7OPhd987g3Ch','ses_df2866b6fffeYKrk7GP2KyMA33',20,'session.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"ses_df2866b6fffeYKrk7GP2KyMA33","slug":"calm-star","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.0047136,"tokens":{"input":2411,"output":61,"reasoning":0,"cache":{"read":633,"write":139}},"title":"First (fork #1)","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522401424,"updated":1795522420780}}}');
INSERT INTO "event" VALUES('evt_20d79e032002jzFoEhWT1hvvPy','ses_df2866b6fffeYKrk7GP2KyMA33',21,'message.updated.1','{"sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","info":{"id":"msg_20d79d8bb001Q7arcgMZMv6FzR","sessionID":"ses_df2866b6fffeYKrk7GP2KyMA33","role":"user","time":{"created":1795522418875},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
CREATE TABLE `event_sequence` (
          `aggregate_id` text PRIMARY KEY,
          `seq` integer NOT NULL,
          `owner_id` text
        );
INSERT INTO "event_sequence" VALUES('ses_df286e3b5ffeQeLmsYJCAxXffb',15,NULL);
INSERT INTO "event_sequence" VALUES('ses_df2866b6fffeYKrk7GP2KyMA33',21,NULL);
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
INSERT INTO "message" VALUES('msg_20d79547c001LiGfAnC6nF4iEt','ses_df286e3b5ffeQeLmsYJCAxXffb',1795522385020,1795522389071,'{"role":"user","time":{"created":1795522385020},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_20d7961ea001Gda3lHgeFTuVeS','ses_df286e3b5ffeQeLmsYJCAxXffb',1795522388458,1795522389003,'{"parentID":"msg_20d79547c001LiGfAnC6nF4iEt","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522388458,"completed":1795522388993},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_20d7995f3001bFrbRfwR758yHE','ses_df2866b6fffeYKrk7GP2KyMA33',1795522385020,1795522401812,'{"role":"user","time":{"created":1795522385020},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_20d7995f3003JJlKuXQPCXFnLa','ses_df2866b6fffeYKrk7GP2KyMA33',1795522388458,1795522401823,'{"parentID":"msg_20d7995f3001bFrbRfwR758yHE","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522388458,"completed":1795522388993},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_20d79d8bb001Q7arcgMZMv6FzR','ses_df2866b6fffeYKrk7GP2KyMA33',1795522418875,1795522420787,'{"role":"user","time":{"created":1795522418875},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_20d79dac0001G7CFaJXcHhlCLt','ses_df2866b6fffeYKrk7GP2KyMA33',1795522419392,1795522420263,'{"parentID":"msg_20d79d8bb001Q7arcgMZMv6FzR","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"write":76,"read":322}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522419392,"completed":1795522420261},"finish":"stop"}');
CREATE TABLE "migration" (id TEXT PRIMARY KEY, time_completed INTEGER NOT NULL);
INSERT INTO "migration" VALUES('20260127222353_familiar_lady_ursula',1795522366292);
INSERT INTO "migration" VALUES('20260211171708_add_project_commands',1795522366292);
INSERT INTO "migration" VALUES('20260213144116_wakeful_the_professor',1795522366293);
INSERT INTO "migration" VALUES('20260225215848_workspace',1795522366293);
INSERT INTO "migration" VALUES('20260227213759_add_session_workspace_id',1795522366293);
INSERT INTO "migration" VALUES('20260228203230_blue_harpoon',1795522366302);
INSERT INTO "migration" VALUES('20260303231226_add_workspace_fields',1795522366302);
INSERT INTO "migration" VALUES('20260309230000_move_org_to_state',1795522366302);
INSERT INTO "migration" VALUES('20260312043431_session_message_cursor',1795522366302);
INSERT INTO "migration" VALUES('20260323234822_events',1795522366302);
INSERT INTO "migration" VALUES('20260410174513_workspace-name',1795522366302);
INSERT INTO "migration" VALUES('20260413175956_chief_energizer',1795522366303);
INSERT INTO "migration" VALUES('20260423070820_add_icon_url_override',1795522366303);
INSERT INTO "migration" VALUES('20260427172553_slow_nightmare',1795522366303);
INSERT INTO "migration" VALUES('20260428004200_add_session_path',1795522366310);
INSERT INTO "migration" VALUES('20260501142318_next_venus',1795522366310);
INSERT INTO "migration" VALUES('20260504145000_add_sync_owner',1795522366310);
INSERT INTO "migration" VALUES('20260507164347_add_workspace_time',1795522366310);
INSERT INTO "migration" VALUES('20260510033149_session_usage',1795522366310);
INSERT INTO "migration" VALUES('20260511000411_data_migration_state',1795522366310);
INSERT INTO "migration" VALUES('20260511173437_session-metadata',1795522366310);
INSERT INTO "migration" VALUES('20260601010001_normalize_storage_paths',1795522366310);
INSERT INTO "migration" VALUES('20260601202201_amazing_prowler',1795522366311);
INSERT INTO "migration" VALUES('20260602002951_lowly_union_jack',1795522366346);
INSERT INTO "migration" VALUES('20260602182828_add_project_directories',1795522366346);
INSERT INTO "migration" VALUES('20260603001617_session_message_projection_indexes',1795522366347);
INSERT INTO "migration" VALUES('20260603040000_session_message_projection_order',1795522366347);
INSERT INTO "migration" VALUES('20260603141458_session_input_inbox',1795522366348);
INSERT INTO "migration" VALUES('20260603160727_jittery_ezekiel_stane',1795522366348);
INSERT INTO "migration" VALUES('20260604172448_event_sourced_session_input',1795522366348);
INSERT INTO "migration" VALUES('20260605003541_add_session_context_snapshot',1795522366348);
INSERT INTO "migration" VALUES('20260605042240_add_context_epoch_agent',1795522366348);
INSERT INTO "migration" VALUES('20260611035744_credential',1795522366348);
INSERT INTO "migration" VALUES('20260611192811_lush_chimera',1795522366348);
INSERT INTO "migration" VALUES('20260612174303_project_dir_strategy',1795522366348);
INSERT INTO "migration" VALUES('20260622142730_simplify_session_context_epoch',1795522366348);
INSERT INTO "migration" VALUES('20260622170816_reset_v2_session_state',1795522366348);
INSERT INTO "migration" VALUES('20260622202450_simplify_session_input',1795522366348);
INSERT INTO "migration" VALUES('20260714141136_session-message-legacy-writer-compat',1795522366348);
INSERT INTO "migration" VALUES('20260828074139_kilocode_board',1795522366348);
INSERT INTO "migration" VALUES('20260903104806_kilocode_board_reset',1795522366349);
INSERT INTO "migration" VALUES('20260907102000_kilocode_model_usage_index',1795522366349);
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO "part" VALUES('prt_20d7955490012Q30Bq3CDKDN7L','msg_20d79547c001LiGfAnC6nF4iEt','ses_df286e3b5ffeQeLmsYJCAxXffb',1795522385230,1795522385231,'{"type":"text","text":"First"}');
INSERT INTO "part" VALUES('prt_20d79638a001MalG61iZHzaOM1','msg_20d7961ea001Gda3lHgeFTuVeS','ses_df286e3b5ffeQeLmsYJCAxXffb',1795522388874,1795522388876,'{"type":"step-start","time":{"start":1795522388799}}');
INSERT INTO "part" VALUES('prt_20d7963920016gERcTJN6GAozb','msg_20d7961ea001Gda3lHgeFTuVeS','ses_df286e3b5ffeQeLmsYJCAxXffb',1795522388882,1795522388887,'{"type":"text","text":"One.","time":{"start":1795522388882,"end":1795522388886}}');
INSERT INTO "part" VALUES('prt_20d7963cb0017zrePCO6X43NUW','msg_20d7961ea001Gda3lHgeFTuVeS','ses_df286e3b5ffeQeLmsYJCAxXffb',1795522388940,1795522388941,'{"reason":"stop","type":"step-finish","time":{"start":1795522388799,"end":1795522388937,"elapsed":138},"metrics":{"generation":195.65217391304347,"source":"computed"},"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"cost":0.00414555}');
INSERT INTO "part" VALUES('prt_20d7995f3002oISSFVbsTxhCTL','msg_20d7995f3001bFrbRfwR758yHE','ses_df2866b6fffeYKrk7GP2KyMA33',1795522401779,1795522401821,'{"type":"text","text":"First"}');
INSERT INTO "part" VALUES('prt_20d7995f3004n79zNNdu3s8u08','msg_20d7995f3003JJlKuXQPCXFnLa','ses_df2866b6fffeYKrk7GP2KyMA33',1795522401779,1795522401823,'{"type":"step-start","time":{"start":1795522388799}}');
INSERT INTO "part" VALUES('prt_20d7995f3005hlhPrxPKuVbp6P','msg_20d7995f3003JJlKuXQPCXFnLa','ses_df2866b6fffeYKrk7GP2KyMA33',1795522401779,1795522401824,'{"type":"text","text":"One.","time":{"start":1795522388882,"end":1795522388886}}');
INSERT INTO "part" VALUES('prt_20d7995f3006X34hG43aZIpfgi','msg_20d7995f3003JJlKuXQPCXFnLa','ses_df2866b6fffeYKrk7GP2KyMA33',1795522401779,1795522401848,'{"reason":"stop","type":"step-finish","time":{"start":1795522388799,"end":1795522388937,"elapsed":138},"metrics":{"generation":195.65217391304347,"source":"computed"},"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"cost":0}');
INSERT INTO "part" VALUES('prt_20d79d8ea001ab23gknfbU2z12','msg_20d79d8bb001Q7arcgMZMv6FzR','ses_df2866b6fffeYKrk7GP2KyMA33',1795522418928,1795522418929,'{"type":"text","text":"Second"}');
INSERT INTO "part" VALUES('prt_20d79dd58001YRwpjvZjHxsnB3','msg_20d79dac0001G7CFaJXcHhlCLt','ses_df2866b6fffeYKrk7GP2KyMA33',1795522420056,1795522420064,'{"type":"step-start","time":{"start":1795522420032}}');
INSERT INTO "part" VALUES('prt_20d79ddc6001L6dUdF5yR8mDY3','msg_20d79dac0001G7CFaJXcHhlCLt','ses_df2866b6fffeYKrk7GP2KyMA33',1795522420166,1795522420181,'{"type":"text","text":"Two.","time":{"start":1795522420166,"end":1795522420180}}');
INSERT INTO "part" VALUES('prt_20d79de1a001o3EVLZOUwamhKQ','msg_20d79dac0001G7CFaJXcHhlCLt','ses_df2866b6fffeYKrk7GP2KyMA33',1795522420251,1795522420252,'{"reason":"stop","type":"step-finish","time":{"start":1795522420032,"end":1795522420249,"elapsed":217},"metrics":{"generation":156.6820276497696,"source":"computed"},"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"write":76,"read":322}},"cost":0.0047136}');
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
INSERT INTO "project" VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795522368193,1795522398443,NULL,'[]',NULL);
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
INSERT INTO "session" VALUES('ses_df286e3b5ffeQeLmsYJCAxXffb','global',NULL,NULL,'crisp-otter','/tmp/box/ws','tmp/box/ws','First','7.7.7',NULL,0,0,0,NULL,NULL,0.00414555,1137,27,0,311,63,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','code','{"id":"mock-model","providerID":"mock","variant":"default"}',1795522370634,1795522389051,NULL,NULL);
INSERT INTO "session" VALUES('ses_df2866b6fffeYKrk7GP2KyMA33','global',NULL,NULL,'calm-star','/tmp/box/ws','tmp/box/ws','First (fork #1)','7.7.7',NULL,0,0,0,NULL,NULL,0.0047136,2411,61,0,633,139,NULL,NULL,'code','{"id":"mock-model","providerID":"mock","variant":"default"}',1795522401424,1795522420780,NULL,NULL);
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
