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
INSERT INTO "event" VALUES('evt_20d77988e001Tp3hiFAIShRr6F','ses_df288677cffeTMP1UMwc1EyuxF',0,'session.created.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"ses_df288677cffeTMP1UMwc1EyuxF","slug":"eager-engine","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"First","version":"7.7.7","time":{"created":1795522271364,"updated":1795522271364},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d77cb3e001td4J2XDWYBpQTF','ses_df288677cffeTMP1UMwc1EyuxF',1,'session.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"ses_df288677cffeTMP1UMwc1EyuxF","slug":"eager-engine","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522271364,"updated":1795522284348},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d77cc94001CGzCvF7FoVmeYw','ses_df288677cffeTMP1UMwc1EyuxF',2,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d77cb3b00142JMGovBy1n64H","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"user","time":{"created":1795522284348},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d77cca10019R0RRPz5W33Vh8','ses_df288677cffeTMP1UMwc1EyuxF',3,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d77cc79001KAnyOq683Qn24m","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d77cb3b00142JMGovBy1n64H","type":"text","text":"First"},"time":1795522284705}');
INSERT INTO "event" VALUES('evt_20d77ccad001PV907Du0inKYX1','ses_df288677cffeTMP1UMwc1EyuxF',4,'session.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"ses_df288677cffeTMP1UMwc1EyuxF","slug":"eager-engine","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522271364,"updated":1795522284716},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d77d787001EXL54VsR3J8xoz','ses_df288677cffeTMP1UMwc1EyuxF',5,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d77d787001I0D514o2Ru66Ke","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"assistant","time":{"created":1795522287495},"parentID":"msg_20d77cb3b00142JMGovBy1n64H","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d77d844001viy7xcbwRgOasi','ses_df288677cffeTMP1UMwc1EyuxF',6,'session.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"ses_df288677cffeTMP1UMwc1EyuxF","slug":"eager-engine","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522271364,"updated":1795522287683},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d77d86c001KoaOHNpLCLVG0s','ses_df288677cffeTMP1UMwc1EyuxF',7,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d77cb3b00142JMGovBy1n64H","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"user","time":{"created":1795522284348},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d77d94b001rkUyfj1Ti1GCCI','ses_df288677cffeTMP1UMwc1EyuxF',8,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d77d94b001gNhpmlaMD53N0T","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d77d787001I0D514o2Ru66Ke","type":"step-start"},"time":1795522287947}');
INSERT INTO "event" VALUES('evt_20d77d94f001M12U1gBejHWQi3','ses_df288677cffeTMP1UMwc1EyuxF',9,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d77d94f001w4Z4RuqGdf3BmM","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d77d787001I0D514o2Ru66Ke","type":"text","text":"","time":{"start":1795522287951}},"time":1795522287951}');
INSERT INTO "event" VALUES('evt_20d77d963001LEew2YBOcO7dHk','ses_df288677cffeTMP1UMwc1EyuxF',10,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d77d94f001w4Z4RuqGdf3BmM","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d77d787001I0D514o2Ru66Ke","type":"text","text":"One.","time":{"start":1795522287951,"end":1795522287971}},"time":1795522287971}');
INSERT INTO "event" VALUES('evt_20d77d9ab0013ttt3j90Rc954I','ses_df288677cffeTMP1UMwc1EyuxF',11,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d77d9ab001o0akmEQH0z161y","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d77d787001I0D514o2Ru66Ke","type":"step-finish","reason":"stop","metrics":{"generation":225,"source":"computed"},"time":{"start":1795522287912,"end":1795522288033,"elapsed":120},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}}},"time":1795522288043}');
INSERT INTO "event" VALUES('evt_20d77d9af001YxxuR8p7tWBUBL','ses_df288677cffeTMP1UMwc1EyuxF',12,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d77d787001I0D514o2Ru66Ke","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"assistant","time":{"created":1795522287495},"parentID":"msg_20d77cb3b00142JMGovBy1n64H","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d77d9b6001pc1ex66t2UaJxC','ses_df288677cffeTMP1UMwc1EyuxF',13,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d77d787001I0D514o2Ru66Ke","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"assistant","time":{"created":1795522287495,"completed":1795522288053},"parentID":"msg_20d77cb3b00142JMGovBy1n64H","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d77db42001VXfNzK65RhuRkX','ses_df288677cffeTMP1UMwc1EyuxF',14,'session.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"ses_df288677cffeTMP1UMwc1EyuxF","slug":"eager-engine","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00414555,"tokens":{"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522271364,"updated":1795522288449},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d77db45002UG9oOIbuNxQQFI','ses_df288677cffeTMP1UMwc1EyuxF',15,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d77cb3b00142JMGovBy1n64H","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"user","time":{"created":1795522284348},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d7846c7001XLFabzry6UMHJY','ses_df288677cffeTMP1UMwc1EyuxF',16,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d7846bd001cqmpKqa6djNKPV","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"user","time":{"created":1795522315965},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d7846cd001bI6vbCmML9PRSj','ses_df288677cffeTMP1UMwc1EyuxF',17,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d7846c5001P3jjXUXr9LEb0f","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d7846bd001cqmpKqa6djNKPV","type":"text","text":"Second"},"time":1795522315981}');
INSERT INTO "event" VALUES('evt_20d7846d50014ss95lJa6R4ATl','ses_df288677cffeTMP1UMwc1EyuxF',18,'session.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"ses_df288677cffeTMP1UMwc1EyuxF","slug":"eager-engine","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00414555,"tokens":{"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522271364,"updated":1795522315989},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d785633001wycKyX0Jepai3i','ses_df288677cffeTMP1UMwc1EyuxF',19,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d785633001n0CToD4xqCT6m5","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"assistant","time":{"created":1795522319923},"parentID":"msg_20d7846bd001cqmpKqa6djNKPV","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d785a54001NwlNm5TA3ZOSNk','ses_df288677cffeTMP1UMwc1EyuxF',20,'session.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"ses_df288677cffeTMP1UMwc1EyuxF","slug":"eager-engine","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00414555,"tokens":{"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522271364,"updated":1795522320979},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d785a87002rsdWj4ltZ8SMNm','ses_df288677cffeTMP1UMwc1EyuxF',21,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d7846bd001cqmpKqa6djNKPV","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"user","time":{"created":1795522315965},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d785d28001RBaVvQBjMexDHq','ses_df288677cffeTMP1UMwc1EyuxF',22,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d785d26001mCzF1xSnT4iDCn","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d785633001n0CToD4xqCT6m5","type":"step-start"},"time":1795522321703}');
INSERT INTO "event" VALUES('evt_20d785d4a001IFyOkVOxa0ZSsS','ses_df288677cffeTMP1UMwc1EyuxF',23,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d785d4a001uSHF9sFxyBVDrn","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d785633001n0CToD4xqCT6m5","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"pending","input":{},"raw":""}},"time":1795522321738}');
INSERT INTO "event" VALUES('evt_20d785d8a001pPyAHOgC6xsDa1','ses_df288677cffeTMP1UMwc1EyuxF',24,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d785d4a001uSHF9sFxyBVDrn","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d785633001n0CToD4xqCT6m5","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"time":{"start":1795522321802}}},"time":1795522321802}');
INSERT INTO "event" VALUES('evt_20d785dd80011EfQ85RA9lcrhA','ses_df288677cffeTMP1UMwc1EyuxF',25,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d785d4a001uSHF9sFxyBVDrn","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d785633001n0CToD4xqCT6m5","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522321802}}},"time":1795522321880}');
INSERT INTO "event" VALUES('evt_20d785e22001dzQamxJ1LXcQKv','ses_df288677cffeTMP1UMwc1EyuxF',26,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d785d4a001uSHF9sFxyBVDrn","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d785633001n0CToD4xqCT6m5","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"output":"","approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522321802}}},"time":1795522321946}');
INSERT INTO "event" VALUES('evt_20d785e8e001znq2W9uK91ZhLF','ses_df288677cffeTMP1UMwc1EyuxF',27,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d785d4a001uSHF9sFxyBVDrn","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d785633001n0CToD4xqCT6m5","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"output":"hi\n","approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522321802}}},"time":1795522322062}');
INSERT INTO "event" VALUES('evt_20d785ef0001SIwiv3dgofPBZc','ses_df288677cffeTMP1UMwc1EyuxF',28,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d785d4a001uSHF9sFxyBVDrn","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d785633001n0CToD4xqCT6m5","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"running","input":{"command":"echo hi"},"metadata":{"output":"hi\n","approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522321802}}},"time":1795522322160}');
INSERT INTO "event" VALUES('evt_20d785f6e0013fjuknWy2elo6T','ses_df288677cffeTMP1UMwc1EyuxF',29,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d785d4a001uSHF9sFxyBVDrn","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d785633001n0CToD4xqCT6m5","type":"tool","callID":"toolu_mock_1_0_0","tool":"bash","state":{"status":"completed","input":{"command":"echo hi"},"output":"hi\n","title":"echo hi","metadata":{"output":"hi\n","exit":0,"description":"echo hi","truncated":false,"approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"time":{"start":1795522321802,"end":1795522322286}}},"time":1795522322286}');
INSERT INTO "event" VALUES('evt_20d7860c2001kk801qCyaJ1hSD','ses_df288677cffeTMP1UMwc1EyuxF',30,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d7860bf001DlH2Mwc7KcOK6N","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d785633001n0CToD4xqCT6m5","type":"step-finish","reason":"tool-calls","metrics":{"generation":28.88700084961767,"source":"computed"},"time":{"start":1795522321405,"end":1795522322582,"elapsed":1177},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}}},"time":1795522322626}');
INSERT INTO "event" VALUES('evt_20d78617e001QnoTye85Vnzqz9','ses_df288677cffeTMP1UMwc1EyuxF',31,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d785633001n0CToD4xqCT6m5","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"assistant","time":{"created":1795522319923},"parentID":"msg_20d7846bd001cqmpKqa6djNKPV","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}},"finish":"tool-calls"}}');
INSERT INTO "event" VALUES('evt_20d7862d5001PUkTC1OotcaA5s','ses_df288677cffeTMP1UMwc1EyuxF',32,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d785633001n0CToD4xqCT6m5","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"assistant","time":{"created":1795522319923,"completed":1795522323015},"parentID":"msg_20d7846bd001cqmpKqa6djNKPV","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"read":322,"write":76}},"finish":"tool-calls"}}');
INSERT INTO "event" VALUES('evt_20d7863ce001WsaH25R4sFXEyR','ses_df288677cffeTMP1UMwc1EyuxF',33,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d7863ca001lTcPuelJZd0ahk","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"assistant","time":{"created":1795522323402},"parentID":"msg_20d7846bd001cqmpKqa6djNKPV","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d7863e8001pJspFS8yD4vmBw','ses_df288677cffeTMP1UMwc1EyuxF',34,'session.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"ses_df288677cffeTMP1UMwc1EyuxF","slug":"eager-engine","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00885915,"tokens":{"input":2411,"output":61,"reasoning":0,"cache":{"read":633,"write":139}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522271364,"updated":1795522323431},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d7863f8002VEy7JwSeCXkBVW','ses_df288677cffeTMP1UMwc1EyuxF',35,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d7846bd001cqmpKqa6djNKPV","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"user","time":{"created":1795522315965},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d7865ff001JOgpnP91OLTKNS','ses_df288677cffeTMP1UMwc1EyuxF',36,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d7865fe001H5FsormnpMJ3QZ","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d7863ca001lTcPuelJZd0ahk","type":"step-start"},"time":1795522323967}');
INSERT INTO "event" VALUES('evt_20d78660d001x8XJvxsbjM5C3W','ses_df288677cffeTMP1UMwc1EyuxF',37,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d78660c0010pi88WAvhpSCXy","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d7863ca001lTcPuelJZd0ahk","type":"text","text":"","time":{"start":1795522323980}},"time":1795522323980}');
INSERT INTO "event" VALUES('evt_20d78661f001T8a2TzIFVH7FCi','ses_df288677cffeTMP1UMwc1EyuxF',38,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d78660c0010pi88WAvhpSCXy","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d7863ca001lTcPuelJZd0ahk","type":"text","text":"Two.","time":{"start":1795522323980,"end":1795522323998}},"time":1795522323999}');
INSERT INTO "event" VALUES('evt_20d7866c8001Li0tVRAojCbnyv','ses_df288677cffeTMP1UMwc1EyuxF',39,'message.part.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","part":{"id":"prt_20d7866c8001Trn7UK2vHZ4oo0","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","messageID":"msg_20d7863ca001lTcPuelJZd0ahk","type":"step-finish","reason":"stop","metrics":{"generation":134.4262295081967,"source":"computed"},"time":{"start":1795522323861,"end":1795522324166,"elapsed":305},"cost":0.00528165,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"read":333,"write":89}}},"time":1795522324168}');
INSERT INTO "event" VALUES('evt_20d7866d80015y6QQdPFXLqYTD','ses_df288677cffeTMP1UMwc1EyuxF',40,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d7863ca001lTcPuelJZd0ahk","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"assistant","time":{"created":1795522323402},"parentID":"msg_20d7846bd001cqmpKqa6djNKPV","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00528165,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"read":333,"write":89}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d7866e9001CnVoEafoT4Gt1n','ses_df288677cffeTMP1UMwc1EyuxF',41,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d7863ca001lTcPuelJZd0ahk","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"assistant","time":{"created":1795522323402,"completed":1795522324200},"parentID":"msg_20d7846bd001cqmpKqa6djNKPV","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00528165,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"read":333,"write":89}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d7869e200125fUakdWwAjfRp','ses_df288677cffeTMP1UMwc1EyuxF',42,'session.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"ses_df288677cffeTMP1UMwc1EyuxF","slug":"eager-engine","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.014140799999999999,"tokens":{"input":3822,"output":102,"reasoning":0,"cache":{"read":966,"write":228}},"title":"First","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522271364,"updated":1795522324961},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d7869f7001ClEmCo6uFA1Vfq','ses_df288677cffeTMP1UMwc1EyuxF',43,'message.updated.1','{"sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","info":{"id":"msg_20d7846bd001cqmpKqa6djNKPV","sessionID":"ses_df288677cffeTMP1UMwc1EyuxF","role":"user","time":{"created":1795522315965},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
CREATE TABLE `event_sequence` (
          `aggregate_id` text PRIMARY KEY,
          `seq` integer NOT NULL,
          `owner_id` text
        );
INSERT INTO "event_sequence" VALUES('ses_df288677cffeTMP1UMwc1EyuxF',43,NULL);
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
INSERT INTO "kilo_board" VALUES('ses_df288677cffeTMP1UMwc1EyuxF','First','msg_20d77cb3b00142JMGovBy1n64H',1,0,0,0,1795522322240,1795522322240);
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
INSERT INTO "message" VALUES('msg_20d77cb3b00142JMGovBy1n64H','ses_df288677cffeTMP1UMwc1EyuxF',1795522284348,1795522288473,'{"role":"user","time":{"created":1795522284348},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_20d77d787001I0D514o2Ru66Ke','ses_df288677cffeTMP1UMwc1EyuxF',1795522287495,1795522288054,'{"parentID":"msg_20d77cb3b00142JMGovBy1n64H","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522287495,"completed":1795522288053},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_20d7846bd001cqmpKqa6djNKPV','ses_df288677cffeTMP1UMwc1EyuxF',1795522315965,1795522324991,'{"role":"user","time":{"created":1795522315965},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_20d785633001n0CToD4xqCT6m5','ses_df288677cffeTMP1UMwc1EyuxF',1795522319923,1795522323296,'{"parentID":"msg_20d7846bd001cqmpKqa6djNKPV","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0047136,"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"write":76,"read":322}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522319923,"completed":1795522323015},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_20d7863ca001lTcPuelJZd0ahk','ses_df288677cffeTMP1UMwc1EyuxF',1795522323402,1795522324210,'{"parentID":"msg_20d7846bd001cqmpKqa6djNKPV","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00528165,"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"write":89,"read":333}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522323402,"completed":1795522324200},"finish":"stop"}');
CREATE TABLE "migration" (id TEXT PRIMARY KEY, time_completed INTEGER NOT NULL);
INSERT INTO "migration" VALUES('20260127222353_familiar_lady_ursula',1795522266695);
INSERT INTO "migration" VALUES('20260211171708_add_project_commands',1795522266696);
INSERT INTO "migration" VALUES('20260213144116_wakeful_the_professor',1795522266696);
INSERT INTO "migration" VALUES('20260225215848_workspace',1795522266696);
INSERT INTO "migration" VALUES('20260227213759_add_session_workspace_id',1795522266696);
INSERT INTO "migration" VALUES('20260228203230_blue_harpoon',1795522266696);
INSERT INTO "migration" VALUES('20260303231226_add_workspace_fields',1795522266696);
INSERT INTO "migration" VALUES('20260309230000_move_org_to_state',1795522266696);
INSERT INTO "migration" VALUES('20260312043431_session_message_cursor',1795522266696);
INSERT INTO "migration" VALUES('20260323234822_events',1795522266696);
INSERT INTO "migration" VALUES('20260410174513_workspace-name',1795522266696);
INSERT INTO "migration" VALUES('20260413175956_chief_energizer',1795522266697);
INSERT INTO "migration" VALUES('20260423070820_add_icon_url_override',1795522266697);
INSERT INTO "migration" VALUES('20260427172553_slow_nightmare',1795522266697);
INSERT INTO "migration" VALUES('20260428004200_add_session_path',1795522266697);
INSERT INTO "migration" VALUES('20260501142318_next_venus',1795522266697);
INSERT INTO "migration" VALUES('20260504145000_add_sync_owner',1795522266697);
INSERT INTO "migration" VALUES('20260507164347_add_workspace_time',1795522266697);
INSERT INTO "migration" VALUES('20260510033149_session_usage',1795522266697);
INSERT INTO "migration" VALUES('20260511000411_data_migration_state',1795522266697);
INSERT INTO "migration" VALUES('20260511173437_session-metadata',1795522266697);
INSERT INTO "migration" VALUES('20260601010001_normalize_storage_paths',1795522266697);
INSERT INTO "migration" VALUES('20260601202201_amazing_prowler',1795522266697);
INSERT INTO "migration" VALUES('20260602002951_lowly_union_jack',1795522266720);
INSERT INTO "migration" VALUES('20260602182828_add_project_directories',1795522266720);
INSERT INTO "migration" VALUES('20260603001617_session_message_projection_indexes',1795522266720);
INSERT INTO "migration" VALUES('20260603040000_session_message_projection_order',1795522266720);
INSERT INTO "migration" VALUES('20260603141458_session_input_inbox',1795522266720);
INSERT INTO "migration" VALUES('20260603160727_jittery_ezekiel_stane',1795522266720);
INSERT INTO "migration" VALUES('20260604172448_event_sourced_session_input',1795522266720);
INSERT INTO "migration" VALUES('20260605003541_add_session_context_snapshot',1795522266720);
INSERT INTO "migration" VALUES('20260605042240_add_context_epoch_agent',1795522266721);
INSERT INTO "migration" VALUES('20260611035744_credential',1795522266721);
INSERT INTO "migration" VALUES('20260611192811_lush_chimera',1795522266721);
INSERT INTO "migration" VALUES('20260612174303_project_dir_strategy',1795522266721);
INSERT INTO "migration" VALUES('20260622142730_simplify_session_context_epoch',1795522266721);
INSERT INTO "migration" VALUES('20260622170816_reset_v2_session_state',1795522266721);
INSERT INTO "migration" VALUES('20260622202450_simplify_session_input',1795522266721);
INSERT INTO "migration" VALUES('20260714141136_session-message-legacy-writer-compat',1795522266721);
INSERT INTO "migration" VALUES('20260828074139_kilocode_board',1795522266721);
INSERT INTO "migration" VALUES('20260903104806_kilocode_board_reset',1795522266721);
INSERT INTO "migration" VALUES('20260907102000_kilocode_model_usage_index',1795522266721);
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO "part" VALUES('prt_20d77cc79001KAnyOq683Qn24m','msg_20d77cb3b00142JMGovBy1n64H','ses_df288677cffeTMP1UMwc1EyuxF',1795522284705,1795522284714,'{"type":"text","text":"First"}');
INSERT INTO "part" VALUES('prt_20d77d94b001gNhpmlaMD53N0T','msg_20d77d787001I0D514o2Ru66Ke','ses_df288677cffeTMP1UMwc1EyuxF',1795522287947,1795522287949,'{"type":"step-start","time":{"start":1795522287912}}');
INSERT INTO "part" VALUES('prt_20d77d94f001w4Z4RuqGdf3BmM','msg_20d77d787001I0D514o2Ru66Ke','ses_df288677cffeTMP1UMwc1EyuxF',1795522287951,1795522287973,'{"type":"text","text":"One.","time":{"start":1795522287951,"end":1795522287971}}');
INSERT INTO "part" VALUES('prt_20d77d9ab001o0akmEQH0z161y','msg_20d77d787001I0D514o2Ru66Ke','ses_df288677cffeTMP1UMwc1EyuxF',1795522288043,1795522288044,'{"reason":"stop","type":"step-finish","time":{"start":1795522287912,"end":1795522288033,"elapsed":120},"metrics":{"generation":225,"source":"computed"},"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"cost":0.00414555}');
INSERT INTO "part" VALUES('prt_20d7846c5001P3jjXUXr9LEb0f','msg_20d7846bd001cqmpKqa6djNKPV','ses_df288677cffeTMP1UMwc1EyuxF',1795522315981,1795522315986,'{"type":"text","text":"Second"}');
INSERT INTO "part" VALUES('prt_20d785d26001mCzF1xSnT4iDCn','msg_20d785633001n0CToD4xqCT6m5','ses_df288677cffeTMP1UMwc1EyuxF',1795522321703,1795522321724,'{"type":"step-start","time":{"start":1795522321405}}');
INSERT INTO "part" VALUES('prt_20d785d4a001uSHF9sFxyBVDrn','msg_20d785633001n0CToD4xqCT6m5','ses_df288677cffeTMP1UMwc1EyuxF',1795522321738,1795522322334,'{"type":"tool","tool":"bash","callID":"toolu_mock_1_0_0","state":{"status":"completed","input":{"command":"echo hi"},"output":"hi\n","metadata":{"output":"hi\n","exit":0,"description":"echo hi","truncated":false,"approval":{"source":"agent","agent":"code","rule":{"permission":"bash","pattern":"echo *","action":"allow"}}},"title":"echo hi","time":{"start":1795522321802,"end":1795522322286}}}');
INSERT INTO "part" VALUES('prt_20d7860bf001DlH2Mwc7KcOK6N','msg_20d785633001n0CToD4xqCT6m5','ses_df288677cffeTMP1UMwc1EyuxF',1795522322626,1795522322706,'{"reason":"tool-calls","type":"step-finish","time":{"start":1795522321405,"end":1795522322582,"elapsed":1177},"metrics":{"generation":28.88700084961767,"source":"computed"},"tokens":{"total":1706,"input":1274,"output":34,"reasoning":0,"cache":{"write":76,"read":322}},"cost":0.0047136}');
INSERT INTO "part" VALUES('prt_20d7865fe001H5FsormnpMJ3QZ','msg_20d7863ca001lTcPuelJZd0ahk','ses_df288677cffeTMP1UMwc1EyuxF',1795522323967,1795522323969,'{"type":"step-start","time":{"start":1795522323861}}');
INSERT INTO "part" VALUES('prt_20d78660c0010pi88WAvhpSCXy','msg_20d7863ca001lTcPuelJZd0ahk','ses_df288677cffeTMP1UMwc1EyuxF',1795522323980,1795522324000,'{"type":"text","text":"Two.","time":{"start":1795522323980,"end":1795522323998}}');
INSERT INTO "part" VALUES('prt_20d7866c8001Trn7UK2vHZ4oo0','msg_20d7863ca001lTcPuelJZd0ahk','ses_df288677cffeTMP1UMwc1EyuxF',1795522324168,1795522324169,'{"reason":"stop","type":"step-finish","time":{"start":1795522323861,"end":1795522324166,"elapsed":305},"metrics":{"generation":134.4262295081967,"source":"computed"},"tokens":{"total":1874,"input":1411,"output":41,"reasoning":0,"cache":{"write":89,"read":333}},"cost":0.00528165}');
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
INSERT INTO "project" VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795522269116,1795522298324,NULL,'[]',NULL);
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
INSERT INTO "session" VALUES('ses_df288677cffeTMP1UMwc1EyuxF','global',NULL,NULL,'eager-engine','/tmp/box/ws','tmp/box/ws','First','7.7.7',NULL,0,0,0,NULL,NULL,1.41407999999999985096e-02,3822,102,0,966,228,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','code','{"id":"mock-model","providerID":"mock","variant":"default"}',1795522271364,1795522324961,NULL,NULL);
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
