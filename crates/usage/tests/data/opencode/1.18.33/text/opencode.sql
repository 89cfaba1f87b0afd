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
INSERT INTO event_sequence VALUES('ses_dfb56bd41ffe1HPv6aUuJudm9t',15,NULL);
CREATE TABLE `event` (
          `id` text PRIMARY KEY,
          `aggregate_id` text NOT NULL,
          `seq` integer NOT NULL,
          `type` text NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_event_aggregate_id_event_sequence_aggregate_id_fk` FOREIGN KEY (`aggregate_id`) REFERENCES `event_sequence`(`aggregate_id`) ON DELETE CASCADE
        );
INSERT INTO event VALUES('evt_204a942c0001vJc7U2AhQbAkR7','ses_dfb56bd41ffe1HPv6aUuJudm9t',0,'session.created.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"ses_dfb56bd41ffe1HPv6aUuJudm9t","slug":"sunny-cactus","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:08:51.262Z","version":"1.18.33","time":{"created":1795374531262,"updated":1795374531262},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a943540010JbMwMlIMN8yLN','ses_dfb56bd41ffe1HPv6aUuJudm9t',1,'session.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"ses_dfb56bd41ffe1HPv6aUuJudm9t","slug":"sunny-cactus","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:08:51.262Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374531262,"updated":1795374531408},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a94362001JULMouAcGflJo8','ses_dfb56bd41ffe1HPv6aUuJudm9t',2,'message.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"msg_204a943500010C6fyOxtZoEvAN","sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","role":"user","time":{"created":1795374531408},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a948a6001bQzkxr5kPv0Rrz','ses_dfb56bd41ffe1HPv6aUuJudm9t',3,'message.part.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","part":{"id":"prt_204a94360001jevujDOppmLy4D","sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","messageID":"msg_204a943500010C6fyOxtZoEvAN","type":"text","text":"\"#scn:text go\""},"time":1795374532774}');
INSERT INTO event VALUES('evt_204a948af001eketxjQdOTCP4f','ses_dfb56bd41ffe1HPv6aUuJudm9t',4,'session.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"ses_dfb56bd41ffe1HPv6aUuJudm9t","slug":"sunny-cactus","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:08:51.262Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374531262,"updated":1795374532782},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a948c0001oa18ghqbBmNI70','ses_dfb56bd41ffe1HPv6aUuJudm9t',5,'message.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"msg_204a948bf001Td6WPJD7PwlMgN","sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","role":"assistant","time":{"created":1795374532800},"parentID":"msg_204a943500010C6fyOxtZoEvAN","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO event VALUES('evt_204a94903001HR24x2iejIjENG','ses_dfb56bd41ffe1HPv6aUuJudm9t',6,'session.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"ses_dfb56bd41ffe1HPv6aUuJudm9t","slug":"sunny-cactus","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"New session - 2026-11-22T19:08:51.262Z","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374531262,"updated":1795374532866},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a94908001ieEfmlIaBYiXRR','ses_dfb56bd41ffe1HPv6aUuJudm9t',7,'message.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"msg_204a943500010C6fyOxtZoEvAN","sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","role":"user","time":{"created":1795374531408},"summary":{"diffs":[]},"agent":"build","model":{"providerID":"mocka","modelID":"m1"}}}');
INSERT INTO event VALUES('evt_204a9497f001Q64FyNChbxcQyo','ses_dfb56bd41ffe1HPv6aUuJudm9t',8,'session.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"ses_dfb56bd41ffe1HPv6aUuJudm9t","slug":"sunny-cactus","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374531262,"updated":1795374532866},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO event VALUES('evt_204a94cf1001pqT9u3V6splfRH','ses_dfb56bd41ffe1HPv6aUuJudm9t',9,'message.part.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","part":{"id":"prt_204a94cf0001m0SGfqKQT4Rrom","sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","messageID":"msg_204a948bf001Td6WPJD7PwlMgN","type":"step-start"},"time":1795374533872}');
INSERT INTO event VALUES('evt_204a94cfd001jFotwsAUm7YFVt','ses_dfb56bd41ffe1HPv6aUuJudm9t',10,'message.part.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","part":{"id":"prt_204a94cfd001Ky9i1nBwG87bG7","sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","messageID":"msg_204a948bf001Td6WPJD7PwlMgN","type":"text","text":"","time":{"start":1795374533885}},"time":1795374533885}');
INSERT INTO event VALUES('evt_204a94d95001dtHQUN8Kiwl3N5','ses_dfb56bd41ffe1HPv6aUuJudm9t',11,'message.part.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","part":{"id":"prt_204a94cfd001Ky9i1nBwG87bG7","sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","messageID":"msg_204a948bf001Td6WPJD7PwlMgN","type":"text","text":"Hello from the mock: naïve café ☃ 你好，世界 🚀👨‍👩‍👧 line1\nline2\t\"quoted\" \\ done.","time":{"start":1795374533885,"end":1795374534036}},"time":1795374534037}');
INSERT INTO event VALUES('evt_204a94d9f001iL6207ZuuE0bWL','ses_dfb56bd41ffe1HPv6aUuJudm9t',12,'message.part.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","part":{"id":"prt_204a94d9e001zbR8s0ecblAue8","sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","messageID":"msg_204a948bf001Td6WPJD7PwlMgN","type":"step-finish","reason":"stop","cost":0.0088077,"tokens":{"total":3654,"input":132,"output":406,"reasoning":0,"cache":{"read":2714,"write":402}}},"time":1795374534046}');
INSERT INTO event VALUES('evt_204a94da300191tPgASOEmON1J','ses_dfb56bd41ffe1HPv6aUuJudm9t',13,'message.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"msg_204a948bf001Td6WPJD7PwlMgN","sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","role":"assistant","time":{"created":1795374532800},"parentID":"msg_204a943500010C6fyOxtZoEvAN","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0088077,"tokens":{"total":3654,"input":132,"output":406,"reasoning":0,"cache":{"read":2714,"write":402}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a94dad0011mCDkVXSxvDCby','ses_dfb56bd41ffe1HPv6aUuJudm9t',14,'message.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"msg_204a948bf001Td6WPJD7PwlMgN","sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","role":"assistant","time":{"created":1795374532800,"completed":1795374534060},"parentID":"msg_204a943500010C6fyOxtZoEvAN","modelID":"m1","providerID":"mocka","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0088077,"tokens":{"total":3654,"input":132,"output":406,"reasoning":0,"cache":{"read":2714,"write":402}},"finish":"stop"}}');
INSERT INTO event VALUES('evt_204a94dec001BWzoqViSdq9msC','ses_dfb56bd41ffe1HPv6aUuJudm9t',15,'session.updated.1','{"sessionID":"ses_dfb56bd41ffe1HPv6aUuJudm9t","info":{"id":"ses_dfb56bd41ffe1HPv6aUuJudm9t","slug":"sunny-cactus","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.0088077,"tokens":{"input":132,"output":406,"reasoning":0,"cache":{"read":2714,"write":402}},"title":"Mock title","agent":"build","model":{"id":"m1","providerID":"mocka","variant":"default"},"version":"1.18.33","time":{"created":1795374531262,"updated":1795374534123},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
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
INSERT INTO project VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795374530236,1795374530236,NULL,'[]',NULL);
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
INSERT INTO message VALUES('msg_204a943500010C6fyOxtZoEvAN','ses_dfb56bd41ffe1HPv6aUuJudm9t',1795374531408,1795374532876,'{"role":"user","time":{"created":1795374531408},"agent":"build","model":{"providerID":"mocka","modelID":"m1"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_204a948bf001Td6WPJD7PwlMgN','ses_dfb56bd41ffe1HPv6aUuJudm9t',1795374532800,1795374534062,'{"parentID":"msg_204a943500010C6fyOxtZoEvAN","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.0088077,"tokens":{"total":3654,"input":132,"output":406,"reasoning":0,"cache":{"write":402,"read":2714}},"modelID":"m1","providerID":"mocka","time":{"created":1795374532800,"completed":1795374534060},"finish":"stop"}');
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO part VALUES('prt_204a94360001jevujDOppmLy4D','msg_204a943500010C6fyOxtZoEvAN','ses_dfb56bd41ffe1HPv6aUuJudm9t',1795374532774,1795374532776,'{"type":"text","text":"\"#scn:text go\""}');
INSERT INTO part VALUES('prt_204a94cf0001m0SGfqKQT4Rrom','msg_204a948bf001Td6WPJD7PwlMgN','ses_dfb56bd41ffe1HPv6aUuJudm9t',1795374533872,1795374533883,'{"type":"step-start"}');
INSERT INTO part VALUES('prt_204a94cfd001Ky9i1nBwG87bG7','msg_204a948bf001Td6WPJD7PwlMgN','ses_dfb56bd41ffe1HPv6aUuJudm9t',1795374533885,1795374534038,'{"type":"text","text":"Hello from the mock: naïve café ☃ 你好，世界 🚀👨‍👩‍👧 line1\nline2\t\"quoted\" \\ done.","time":{"start":1795374533885,"end":1795374534036}}');
INSERT INTO part VALUES('prt_204a94d9e001zbR8s0ecblAue8','msg_204a948bf001Td6WPJD7PwlMgN','ses_dfb56bd41ffe1HPv6aUuJudm9t',1795374534046,1795374534049,'{"reason":"stop","type":"step-finish","tokens":{"total":3654,"input":132,"output":406,"reasoning":0,"cache":{"write":402,"read":2714}},"cost":0.0088077}');
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
INSERT INTO session VALUES('ses_dfb56bd41ffe1HPv6aUuJudm9t','global',NULL,NULL,'sunny-cactus','/tmp/box/ws','tmp/box/ws','Mock title','1.18.33',NULL,0,0,0,NULL,NULL,0.0088076999999999999041,132,406,0,2714,402,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m1","providerID":"mocka","variant":"default"}',1795374531262,1795374534123,NULL,NULL);
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
INSERT INTO migration VALUES('20260127222353_familiar_lady_ursula',1795374529723);
INSERT INTO migration VALUES('20260211171708_add_project_commands',1795374529724);
INSERT INTO migration VALUES('20260213144116_wakeful_the_professor',1795374529724);
INSERT INTO migration VALUES('20260225215848_workspace',1795374529724);
INSERT INTO migration VALUES('20260227213759_add_session_workspace_id',1795374529724);
INSERT INTO migration VALUES('20260228203230_blue_harpoon',1795374529724);
INSERT INTO migration VALUES('20260303231226_add_workspace_fields',1795374529724);
INSERT INTO migration VALUES('20260309230000_move_org_to_state',1795374529725);
INSERT INTO migration VALUES('20260312043431_session_message_cursor',1795374529725);
INSERT INTO migration VALUES('20260323234822_events',1795374529725);
INSERT INTO migration VALUES('20260410174513_workspace-name',1795374529725);
INSERT INTO migration VALUES('20260413175956_chief_energizer',1795374529725);
INSERT INTO migration VALUES('20260423070820_add_icon_url_override',1795374529725);
INSERT INTO migration VALUES('20260427172553_slow_nightmare',1795374529725);
INSERT INTO migration VALUES('20260428004200_add_session_path',1795374529726);
INSERT INTO migration VALUES('20260501142318_next_venus',1795374529726);
INSERT INTO migration VALUES('20260504145000_add_sync_owner',1795374529726);
INSERT INTO migration VALUES('20260507164347_add_workspace_time',1795374529726);
INSERT INTO migration VALUES('20260510033149_session_usage',1795374529726);
INSERT INTO migration VALUES('20260511000411_data_migration_state',1795374529727);
INSERT INTO migration VALUES('20260511173437_session-metadata',1795374529727);
INSERT INTO migration VALUES('20260601010001_normalize_storage_paths',1795374529727);
INSERT INTO migration VALUES('20260601202201_amazing_prowler',1795374529727);
INSERT INTO migration VALUES('20260602002951_lowly_union_jack',1795374529728);
INSERT INTO migration VALUES('20260602182828_add_project_directories',1795374529728);
INSERT INTO migration VALUES('20260603001617_session_message_projection_indexes',1795374529728);
INSERT INTO migration VALUES('20260603040000_session_message_projection_order',1795374529728);
INSERT INTO migration VALUES('20260603141458_session_input_inbox',1795374529728);
INSERT INTO migration VALUES('20260603160727_jittery_ezekiel_stane',1795374529728);
INSERT INTO migration VALUES('20260604172448_event_sourced_session_input',1795374529729);
INSERT INTO migration VALUES('20260605003541_add_session_context_snapshot',1795374529729);
INSERT INTO migration VALUES('20260605042240_add_context_epoch_agent',1795374529729);
INSERT INTO migration VALUES('20260611035744_credential',1795374529729);
INSERT INTO migration VALUES('20260611192811_lush_chimera',1795374529729);
INSERT INTO migration VALUES('20260612174303_project_dir_strategy',1795374529729);
INSERT INTO migration VALUES('20260622142730_simplify_session_context_epoch',1795374529730);
INSERT INTO migration VALUES('20260622170816_reset_v2_session_state',1795374529730);
INSERT INTO migration VALUES('20260622202450_simplify_session_input',1795374529730);
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
