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
INSERT INTO event_sequence VALUES('ses_dfb56a69cffeGxLyhlefpIrgxl',36,NULL);
CREATE TABLE `event` (
          `id` text PRIMARY KEY,
          `aggregate_id` text NOT NULL,
          `seq` integer NOT NULL,
          `type` text NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_event_aggregate_id_event_sequence_aggregate_id_fk` FOREIGN KEY (`aggregate_id`) REFERENCES `event_sequence`(`aggregate_id`) ON DELETE CASCADE
        );
INSERT INTO event VALUES('evt_204a95967001Kofe1IMV5AkU9l','ses_dfb56a69cffeGxLyhlefpIrgxl',0,'session.created.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"ses_dfb56a69cffeGxLyhlefpIrgxl","slug":"clever-harbor","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:08:57.059Z","version":"1.18.33","time":{"created":1795374537059,"updated":1795374537059},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a959ef0017dK16CrIgKb8QT','ses_dfb56a69cffeGxLyhlefpIrgxl',1,'session.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"ses_dfb56a69cffeGxLyhlefpIrgxl","slug":"clever-harbor","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:08:57.059Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374537059,"updated":1795374537196},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a959ff001djojZ4gVAizbsd','ses_dfb56a69cffeGxLyhlefpIrgxl',2,'message.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"msg_204a959ec001HYpjUymYPSsP1h","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","role":"user","time":{"created":1795374537196},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a95f77001qWPHITvWOuofqZ','ses_dfb56a69cffeGxLyhlefpIrgxl',3,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a959fe001X2kRMegbA9UcsO","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a959ec001HYpjUymYPSsP1h","type":"text","text":"\"#scn:two go\""},"time":1795374538615}');
INSERT INTO event VALUES('evt_204a95f830014AIoUK3Njm3z0s','ses_dfb56a69cffeGxLyhlefpIrgxl',4,'session.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"ses_dfb56a69cffeGxLyhlefpIrgxl","slug":"clever-harbor","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:08:57.059Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374537059,"updated":1795374538626},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a95f990010S512TGTzW5f7C','ses_dfb56a69cffeGxLyhlefpIrgxl',5,'message.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"msg_204a95f99001UthmTLGluitclp","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","role":"assistant","time":{"created":1795374538649},"parentID":"msg_204a959ec001HYpjUymYPSsP1h","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a95ff9001vmDh9hLCVvmlAr','ses_dfb56a69cffeGxLyhlefpIrgxl',6,'session.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"ses_dfb56a69cffeGxLyhlefpIrgxl","slug":"clever-harbor","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:08:57.059Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374537059,"updated":1795374538743},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a96007001fh96DIQYI7NGW0','ses_dfb56a69cffeGxLyhlefpIrgxl',7,'message.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"msg_204a959ec001HYpjUymYPSsP1h","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","role":"user","time":{"created":1795374537196},"summary":{"diffs":[]},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a96085001eGmblYMvZsGFQ7','ses_dfb56a69cffeGxLyhlefpIrgxl',8,'session.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"ses_dfb56a69cffeGxLyhlefpIrgxl","slug":"clever-harbor","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374537059,"updated":1795374538743},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a96160001fiRcMtyogqyB1j','ses_dfb56a69cffeGxLyhlefpIrgxl',9,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a96160001U5sBQqe2EdXWL8","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"step-start"},"time":1795374539104}');
INSERT INTO event VALUES('evt_204a96167001eE4SycNVRzgU3P','ses_dfb56a69cffeGxLyhlefpIrgxl',10,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a96167001QJl8xsO5xOLbjA","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"reasoning","text":"","time":{"start":1795374539111}},"time":1795374539111}');
INSERT INTO event VALUES('evt_204a961750018poF1PHeHWFFrj','ses_dfb56a69cffeGxLyhlefpIrgxl',11,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a96167001QJl8xsO5xOLbjA","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"reasoning","text":"Two.","metadata":{"anthropic":{"signature":"c2ln"}},"time":{"start":1795374539111,"end":1795374539125}},"time":1795374539125}');
INSERT INTO event VALUES('evt_204a96179001nulrXTuDqADfL1','ses_dfb56a69cffeGxLyhlefpIrgxl',12,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a96178001YbvuFOyWKkPXac","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"text","text":"","time":{"start":1795374539128}},"time":1795374539128}');
INSERT INTO event VALUES('evt_204a9617e001A82HM6sHDM0FTY','ses_dfb56a69cffeGxLyhlefpIrgxl',13,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a96178001YbvuFOyWKkPXac","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"text","text":"Two calls.","time":{"start":1795374539128,"end":1795374539134}},"time":1795374539134}');
INSERT INTO event VALUES('evt_204a96182001rCHcC3WPfR9EIC','ses_dfb56a69cffeGxLyhlefpIrgxl',14,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a96182001gIf8Ua3qj2mLBz","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"pending","input":{},"raw":""}},"time":1795374539138}');
INSERT INTO event VALUES('evt_204a96197001QHJDwFMfkvfK91','ses_dfb56a69cffeGxLyhlefpIrgxl',15,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a96182001gIf8Ua3qj2mLBz","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"running","input":{"command":"echo one","description":"run a command"},"time":{"start":1795374539158}}},"time":1795374539159}');
INSERT INTO event VALUES('evt_204a9619b001jLqd2hDnh6FMVp','ses_dfb56a69cffeGxLyhlefpIrgxl',16,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a9619b001I4AwHL1YerKWiX","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"pending","input":{},"raw":""}},"time":1795374539163}');
INSERT INTO event VALUES('evt_204a961b0001dKLaAfSn1bHRoL','ses_dfb56a69cffeGxLyhlefpIrgxl',17,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a9619b001I4AwHL1YerKWiX","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"running","input":{"command":"echo two","description":"run a command"},"time":{"start":1795374539184}}},"time":1795374539184}');
INSERT INTO event VALUES('evt_204a96508001E2xHQMKeqFQ9Ri','ses_dfb56a69cffeGxLyhlefpIrgxl',18,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a96182001gIf8Ua3qj2mLBz","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"running","input":{"command":"echo one","description":"run a command"},"metadata":{"output":""},"time":{"start":1795374539158}}},"time":1795374540040}');
INSERT INTO event VALUES('evt_204a96525001vA4XR1O8lqh9g4','ses_dfb56a69cffeGxLyhlefpIrgxl',19,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a9619b001I4AwHL1YerKWiX","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"running","input":{"command":"echo two","description":"run a command"},"metadata":{"output":""},"time":{"start":1795374539184}}},"time":1795374540069}');
INSERT INTO event VALUES('evt_204a9654c001GKjDIFhc1w6WJM','ses_dfb56a69cffeGxLyhlefpIrgxl',20,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a96182001gIf8Ua3qj2mLBz","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"running","input":{"command":"echo one","description":"run a command"},"metadata":{"output":"one\n"},"time":{"start":1795374539158}}},"time":1795374540108}');
INSERT INTO event VALUES('evt_204a96557001oCUN921F7i8XVO','ses_dfb56a69cffeGxLyhlefpIrgxl',21,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a96182001gIf8Ua3qj2mLBz","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"tool","callID":"toolu_a","tool":"bash","state":{"status":"completed","input":{"command":"echo one","description":"run a command"},"output":"one\n","title":"echo one","metadata":{"output":"one\n","exit":0,"truncated":false},"time":{"start":1795374539158,"end":1795374540119}}},"time":1795374540119}');
INSERT INTO event VALUES('evt_204a9655e001b53GexZrzGrHFu','ses_dfb56a69cffeGxLyhlefpIrgxl',22,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a9619b001I4AwHL1YerKWiX","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"running","input":{"command":"echo two","description":"run a command"},"metadata":{"output":"two\n"},"time":{"start":1795374539184}}},"time":1795374540126}');
INSERT INTO event VALUES('evt_204a965690011jg9jBeDR9sa8V','ses_dfb56a69cffeGxLyhlefpIrgxl',23,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a9619b001I4AwHL1YerKWiX","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"tool","callID":"toolu_b","tool":"bash","state":{"status":"completed","input":{"command":"echo two","description":"run a command"},"output":"two\n","title":"echo two","metadata":{"output":"two\n","exit":0,"truncated":false},"time":{"start":1795374539184,"end":1795374540136}}},"time":1795374540137}');
INSERT INTO event VALUES('evt_204a9656e0015Xxm91ZrBYe9wA','ses_dfb56a69cffeGxLyhlefpIrgxl',24,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a9656e0011pxBfzRF3z5MvV","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a95f99001UthmTLGluitclp","type":"step-finish","reason":"tool-calls","cost":0.0098847,"tokens":{"total":3894,"input":152,"output":466,"reasoning":0,"cache":{"read":2854,"write":422}}},"time":1795374540142}');
INSERT INTO event VALUES('evt_204a96576001hWDQzqYrOwG29a','ses_dfb56a69cffeGxLyhlefpIrgxl',25,'message.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"msg_204a95f99001UthmTLGluitclp","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","role":"assistant","time":{"created":1795374538649},"parentID":"msg_204a959ec001HYpjUymYPSsP1h","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0098847,"tokens":{"total":3894,"input":152,"output":466,"reasoning":0,"cache":{"read":2854,"write":422}},"finish":"tool-calls"}}');
INSERT INTO event VALUES('evt_204a9657c00119mM2DJtaWHkau','ses_dfb56a69cffeGxLyhlefpIrgxl',26,'message.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"msg_204a95f99001UthmTLGluitclp","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","role":"assistant","time":{"created":1795374538649,"completed":1795374540155},"parentID":"msg_204a959ec001HYpjUymYPSsP1h","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0098847,"tokens":{"total":3894,"input":152,"output":466,"reasoning":0,"cache":{"read":2854,"write":422}},"finish":"tool-calls"}}');
INSERT INTO event VALUES('evt_204a96582001FvADq4f769xAt6','ses_dfb56a69cffeGxLyhlefpIrgxl',27,'message.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"msg_204a965820018ljI2gBswlfrVO","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","role":"assistant","time":{"created":1795374540162},"parentID":"msg_204a959ec001HYpjUymYPSsP1h","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a96675001JR1Bff7D38spGI','ses_dfb56a69cffeGxLyhlefpIrgxl',28,'session.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"ses_dfb56a69cffeGxLyhlefpIrgxl","slug":"clever-harbor","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.0098847,"tokens":{"input":152,"output":466,"reasoning":0,"cache":{"read":2854,"write":422}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374537059,"updated":1795374540404},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a9667d001BERXbLM9UOH5WO','ses_dfb56a69cffeGxLyhlefpIrgxl',29,'message.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"msg_204a959ec001HYpjUymYPSsP1h","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","role":"user","time":{"created":1795374537196},"summary":{"diffs":[]},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a966c9001ehL4wIIuar0OCi','ses_dfb56a69cffeGxLyhlefpIrgxl',30,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a966c9001wXWstRgC3h36Ce","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a965820018ljI2gBswlfrVO","type":"step-start"},"time":1795374540489}');
INSERT INTO event VALUES('evt_204a966d1001ayipYK4cScD6Im','ses_dfb56a69cffeGxLyhlefpIrgxl',31,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a966d1001vY5LbC4RbbnzMK","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a965820018ljI2gBswlfrVO","type":"text","text":"","time":{"start":1795374540497}},"time":1795374540497}');
INSERT INTO event VALUES('evt_204a966d9001KkfWdaHGPbLlTV','ses_dfb56a69cffeGxLyhlefpIrgxl',32,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a966d1001vY5LbC4RbbnzMK","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a965820018ljI2gBswlfrVO","type":"text","text":"Both ran.","time":{"start":1795374540497,"end":1795374540505}},"time":1795374540505}');
INSERT INTO event VALUES('evt_204a966e3001T7x5V7mmn1sZSL','ses_dfb56a69cffeGxLyhlefpIrgxl',33,'message.part.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","part":{"id":"prt_204a966e2001g5dlpQXlbdL1cZ","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","messageID":"msg_204a965820018ljI2gBswlfrVO","type":"step-finish","reason":"stop","cost":0.00993855,"tokens":{"total":3906,"input":153,"output":469,"reasoning":0,"cache":{"read":2861,"write":423}}},"time":1795374540515}');
INSERT INTO event VALUES('evt_204a966e6001M0btREeYCkblut','ses_dfb56a69cffeGxLyhlefpIrgxl',34,'message.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"msg_204a965820018ljI2gBswlfrVO","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","role":"assistant","time":{"created":1795374540162},"parentID":"msg_204a959ec001HYpjUymYPSsP1h","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00993855,"tokens":{"total":3906,"input":153,"output":469,"reasoning":0,"cache":{"read":2861,"write":423}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a966ea001xMpNyqOqnHIOBZ','ses_dfb56a69cffeGxLyhlefpIrgxl',35,'message.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"msg_204a965820018ljI2gBswlfrVO","sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","role":"assistant","time":{"created":1795374540162,"completed":1795374540522},"parentID":"msg_204a959ec001HYpjUymYPSsP1h","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00993855,"tokens":{"total":3906,"input":153,"output":469,"reasoning":0,"cache":{"read":2861,"write":423}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a96723001uS7kLS2QSdeXqi','ses_dfb56a69cffeGxLyhlefpIrgxl',36,'session.updated.1','{"sessionID":"ses_dfb56a69cffeGxLyhlefpIrgxl","info":{"id":"ses_dfb56a69cffeGxLyhlefpIrgxl","slug":"clever-harbor","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.01982325,"tokens":{"input":305,"output":935,"reasoning":0,"cache":{"read":5715,"write":845}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374537059,"updated":1795374540575},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
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
INSERT INTO project VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795374536267,1795374536267,NULL,'[]',NULL);
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
INSERT INTO message VALUES('msg_204a959ec001HYpjUymYPSsP1h','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374537196,1795374540415,'{"role":"user","time":{"created":1795374537196},"agent":"build","model":{"providerID":"mocka","modelID":"m1"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_204a95f99001UthmTLGluitclp','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374538649,1795374540157,'{"parentID":"msg_204a959ec001HYpjUymYPSsP1h","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0098847,"tokens":{"total":3894,"input":152,"output":466,"reasoning":0,"cache":{"write":422,"read":2854}},"modelID":"m1","providerID":"mocka","time":{"created":1795374538649,"completed":1795374540155},"finish":"tool-calls"}');
INSERT INTO message VALUES('msg_204a965820018ljI2gBswlfrVO','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374540162,1795374540523,'{"parentID":"msg_204a959ec001HYpjUymYPSsP1h","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00993855,"tokens":{"total":3906,"input":153,"output":469,"reasoning":0,"cache":{"write":423,"read":2861}},"modelID":"m1","providerID":"mocka","time":{"created":1795374540162,"completed":1795374540522},"finish":"stop"}');
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO part VALUES('prt_204a959fe001X2kRMegbA9UcsO','msg_204a959ec001HYpjUymYPSsP1h','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374538615,1795374538619,'{"type":"text","text":"\"#scn:two go\""}');
INSERT INTO part VALUES('prt_204a96160001U5sBQqe2EdXWL8','msg_204a95f99001UthmTLGluitclp','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374539104,1795374539108,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a96167001QJl8xsO5xOLbjA','msg_204a95f99001UthmTLGluitclp','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374539111,1795374539127,'{"type":"reasoning","text":"Two.","time":{"start":1795374539111,"end":1795374539125},"metadata":{"anthropic":{"signature":"c2ln"}}}');
INSERT INTO part VALUES('prt_204a96178001YbvuFOyWKkPXac','msg_204a95f99001UthmTLGluitclp','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374539128,1795374539135,'{"type":"text","text":"Two calls.","time":{"start":1795374539128,"end":1795374539134}}');
INSERT INTO part VALUES('prt_204a96182001gIf8Ua3qj2mLBz','msg_204a95f99001UthmTLGluitclp','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374539138,1795374540125,'{"type":"tool","tool":"bash","callID":"toolu_a","state":{"status":"completed","input":{"command":"echo one","description":"run a command"},"output":"one\n","metadata":{"output":"one\n","exit":0,"truncated":false},"title":"echo one","time":{"start":1795374539158,"end":1795374540119}}}');
INSERT INTO part VALUES('prt_204a9619b001I4AwHL1YerKWiX','msg_204a95f99001UthmTLGluitclp','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374539163,1795374540138,'{"type":"tool","tool":"bash","callID":"toolu_b","state":{"status":"completed","input":{"command":"echo two","description":"run a command"},"output":"two\n","metadata":{"output":"two\n","exit":0,"truncated":false},"title":"echo two","time":{"start":1795374539184,"end":1795374540136}}}');
INSERT INTO part VALUES('prt_204a9656e0011pxBfzRF3z5MvV','msg_204a95f99001UthmTLGluitclp','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374540142,1795374540143,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":3894,"input":152,"output":466,"reasoning":0,"cache":{"write":422,"read":2854}},"cost":0.0098847}');
INSERT INTO part VALUES('prt_204a966c9001wXWstRgC3h36Ce','msg_204a965820018ljI2gBswlfrVO','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374540489,1795374540491,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a966d1001vY5LbC4RbbnzMK','msg_204a965820018ljI2gBswlfrVO','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374540497,1795374540506,'{"type":"text","text":"Both ran.","time":{"start":1795374540497,"end":1795374540505}}');
INSERT INTO part VALUES('prt_204a966e2001g5dlpQXlbdL1cZ','msg_204a965820018ljI2gBswlfrVO','ses_dfb56a69cffeGxLyhlefpIrgxl',1795374540515,1795374540516,'{"reason":"stop","type":"step-finish","tokens":{"total":3906,"input":153,"output":469,"reasoning":0,"cache":{"write":423,"read":2861}},"cost":0.00993855}');
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
INSERT INTO session VALUES('ses_dfb56a69cffeGxLyhlefpIrgxl','global',NULL,NULL,'clever-harbor','/tmp/box/ws','tmp/box/ws','Mock title','1.18.33',NULL,0,0,0,NULL,NULL,0.019823250000000000592,305,935,0,5715,845,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m1","providerID":"mocka","variant":"default"}',1795374537059,1795374540575,NULL,NULL);
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
INSERT INTO migration VALUES('20260127222353_familiar_lady_ursula',1795374535738);
INSERT INTO migration VALUES('20260211171708_add_project_commands',1795374535739);
INSERT INTO migration VALUES('20260213144116_wakeful_the_professor',1795374535739);
INSERT INTO migration VALUES('20260225215848_workspace',1795374535739);
INSERT INTO migration VALUES('20260227213759_add_session_workspace_id',1795374535739);
INSERT INTO migration VALUES('20260228203230_blue_harpoon',1795374535739);
INSERT INTO migration VALUES('20260303231226_add_workspace_fields',1795374535739);
INSERT INTO migration VALUES('20260309230000_move_org_to_state',1795374535740);
INSERT INTO migration VALUES('20260312043431_session_message_cursor',1795374535740);
INSERT INTO migration VALUES('20260323234822_events',1795374535740);
INSERT INTO migration VALUES('20260410174513_workspace-name',1795374535745);
INSERT INTO migration VALUES('20260413175956_chief_energizer',1795374535745);
INSERT INTO migration VALUES('20260423070820_add_icon_url_override',1795374535745);
INSERT INTO migration VALUES('20260427172553_slow_nightmare',1795374535745);
INSERT INTO migration VALUES('20260428004200_add_session_path',1795374535745);
INSERT INTO migration VALUES('20260501142318_next_venus',1795374535746);
INSERT INTO migration VALUES('20260504145000_add_sync_owner',1795374535746);
INSERT INTO migration VALUES('20260507164347_add_workspace_time',1795374535746);
INSERT INTO migration VALUES('20260510033149_session_usage',1795374535746);
INSERT INTO migration VALUES('20260511000411_data_migration_state',1795374535747);
INSERT INTO migration VALUES('20260511173437_session-metadata',1795374535747);
INSERT INTO migration VALUES('20260601010001_normalize_storage_paths',1795374535747);
INSERT INTO migration VALUES('20260601202201_amazing_prowler',1795374535747);
INSERT INTO migration VALUES('20260602002951_lowly_union_jack',1795374535747);
INSERT INTO migration VALUES('20260602182828_add_project_directories',1795374535748);
INSERT INTO migration VALUES('20260603001617_session_message_projection_indexes',1795374535748);
INSERT INTO migration VALUES('20260603040000_session_message_projection_order',1795374535748);
INSERT INTO migration VALUES('20260603141458_session_input_inbox',1795374535748);
INSERT INTO migration VALUES('20260603160727_jittery_ezekiel_stane',1795374535749);
INSERT INTO migration VALUES('20260604172448_event_sourced_session_input',1795374535749);
INSERT INTO migration VALUES('20260605003541_add_session_context_snapshot',1795374535750);
INSERT INTO migration VALUES('20260605042240_add_context_epoch_agent',1795374535750);
INSERT INTO migration VALUES('20260611035744_credential',1795374535750);
INSERT INTO migration VALUES('20260611192811_lush_chimera',1795374535750);
INSERT INTO migration VALUES('20260612174303_project_dir_strategy',1795374535750);
INSERT INTO migration VALUES('20260622142730_simplify_session_context_epoch',1795374535750);
INSERT INTO migration VALUES('20260622170816_reset_v2_session_state',1795374535751);
INSERT INTO migration VALUES('20260622202450_simplify_session_input',1795374535751);
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
