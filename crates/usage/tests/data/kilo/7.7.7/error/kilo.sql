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
INSERT INTO "event" VALUES('evt_20d7a2131001beMrM00jiUeHPD','ses_df285dee8ffeV2DbgM5VeiVEKj',0,'session.created.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"ses_df285dee8ffeV2DbgM5VeiVEKj","slug":"shiny-circuit","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Try","version":"7.7.7","time":{"created":1795522437399,"updated":1795522437399},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d7a7626001V7xy7Tawj0Y5lV','ses_df285dee8ffeV2DbgM5VeiVEKj',1,'session.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"ses_df285dee8ffeV2DbgM5VeiVEKj","slug":"shiny-circuit","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Try","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522437399,"updated":1795522459171},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d7a763f001SlIx1fAzmWM9H8','ses_df285dee8ffeV2DbgM5VeiVEKj',2,'message.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"msg_20d7a7623001OvphmenPUDUxoI","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","role":"user","time":{"created":1795522459171},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d7a7642001u3T16ii047pAKH','ses_df285dee8ffeV2DbgM5VeiVEKj',3,'message.part.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","part":{"id":"prt_20d7a763d0013AWmP8YJPgRahX","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","messageID":"msg_20d7a7623001OvphmenPUDUxoI","type":"text","text":"Try"},"time":1795522459202}');
INSERT INTO "event" VALUES('evt_20d7a766000167Dj9XJwFVLyu5','ses_df285dee8ffeV2DbgM5VeiVEKj',4,'session.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"ses_df285dee8ffeV2DbgM5VeiVEKj","slug":"shiny-circuit","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Try","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522437399,"updated":1795522459230},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d7a891100143A03aAZi7Sk4N','ses_df285dee8ffeV2DbgM5VeiVEKj',5,'message.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"msg_20d7a8911001ty44mqwNYpejKm","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","role":"assistant","time":{"created":1795522464017},"parentID":"msg_20d7a7623001OvphmenPUDUxoI","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}}');
INSERT INTO "event" VALUES('evt_20d7a8d890014Umqg110NGmrEv','ses_df285dee8ffeV2DbgM5VeiVEKj',6,'session.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"ses_df285dee8ffeV2DbgM5VeiVEKj","slug":"shiny-circuit","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"title":"Try","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522437399,"updated":1795522465160},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d7a8e01001n9t8awDSLHt3NQ','ses_df285dee8ffeV2DbgM5VeiVEKj',7,'message.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"msg_20d7a7623001OvphmenPUDUxoI","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","role":"user","time":{"created":1795522459171},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
INSERT INTO "event" VALUES('evt_20d7a96f4001drzBKSQXl06GBT','ses_df285dee8ffeV2DbgM5VeiVEKj',8,'message.part.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","part":{"id":"prt_20d7a96f4001rVDBg48cF70L0q","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","messageID":"msg_20d7a8911001ty44mqwNYpejKm","type":"step-start"},"time":1795522467572}');
INSERT INTO "event" VALUES('evt_20d7a96fc00172YIO65IfDj4Ts','ses_df285dee8ffeV2DbgM5VeiVEKj',9,'message.part.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","part":{"id":"prt_20d7a96fb001016SNCH7vJUkne","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","messageID":"msg_20d7a8911001ty44mqwNYpejKm","type":"text","text":"","time":{"start":1795522467579}},"time":1795522467580}');
INSERT INTO "event" VALUES('evt_20d7a9781001y4WcriiQwGyJ8y','ses_df285dee8ffeV2DbgM5VeiVEKj',10,'message.part.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","part":{"id":"prt_20d7a96fb001016SNCH7vJUkne","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","messageID":"msg_20d7a8911001ty44mqwNYpejKm","type":"text","text":"Went well.","time":{"start":1795522467579,"end":1795522467713}},"time":1795522467713}');
INSERT INTO "event" VALUES('evt_20d7a9807001Wb4bVxRmx4ofG3','ses_df285dee8ffeV2DbgM5VeiVEKj',11,'message.part.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","part":{"id":"prt_20d7a9807001xmeKOpKoa07YQt","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","messageID":"msg_20d7a8911001ty44mqwNYpejKm","type":"step-finish","reason":"stop","metrics":{"generation":97.47292418772564,"source":"computed"},"time":{"start":1795522467563,"end":1795522467840,"elapsed":277},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}}},"time":1795522467847}');
INSERT INTO "event" VALUES('evt_20d7a9814001AWsVBEsXMPf1UM','ses_df285dee8ffeV2DbgM5VeiVEKj',12,'message.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"msg_20d7a8911001ty44mqwNYpejKm","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","role":"assistant","time":{"created":1795522464017},"parentID":"msg_20d7a7623001OvphmenPUDUxoI","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d7a9828001ywthGPx5Zl9m4W','ses_df285dee8ffeV2DbgM5VeiVEKj',13,'message.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"msg_20d7a8911001ty44mqwNYpejKm","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","role":"assistant","time":{"created":1795522464017,"completed":1795522467879},"parentID":"msg_20d7a7623001OvphmenPUDUxoI","modelID":"mock-model","providerID":"mock","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"finish":"stop"}}');
INSERT INTO "event" VALUES('evt_20d7a994c001eB6stuyj2scL0Z','ses_df285dee8ffeV2DbgM5VeiVEKj',14,'session.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"ses_df285dee8ffeV2DbgM5VeiVEKj","slug":"shiny-circuit","projectID":"global","directory":"/tmp/box/ws","path":"tmp/box/ws","summary":{"additions":0,"deletions":0,"files":0},"cost":0.00414555,"tokens":{"input":1137,"output":27,"reasoning":0,"cache":{"read":311,"write":63}},"title":"Try","agent":"code","model":{"id":"mock-model","providerID":"mock","variant":"default"},"version":"7.7.7","time":{"created":1795522437399,"updated":1795522468171},"permission":[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]}}');
INSERT INTO "event" VALUES('evt_20d7a9964001oEi2zfpL3tQAIU','ses_df285dee8ffeV2DbgM5VeiVEKj',15,'message.updated.1','{"sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","info":{"id":"msg_20d7a7623001OvphmenPUDUxoI","sessionID":"ses_df285dee8ffeV2DbgM5VeiVEKj","role":"user","time":{"created":1795522459171},"summary":{"diffs":[]},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"}}}');
CREATE TABLE `event_sequence` (
          `aggregate_id` text PRIMARY KEY,
          `seq` integer NOT NULL,
          `owner_id` text
        );
INSERT INTO "event_sequence" VALUES('ses_df285dee8ffeV2DbgM5VeiVEKj',15,NULL);
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
INSERT INTO "message" VALUES('msg_20d7a7623001OvphmenPUDUxoI','ses_df285dee8ffeV2DbgM5VeiVEKj',1795522459171,1795522468196,'{"role":"user","time":{"created":1795522459171},"agent":"code","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_20d7a8911001ty44mqwNYpejKm','ses_df285dee8ffeV2DbgM5VeiVEKj',1795522464017,1795522467881,'{"parentID":"msg_20d7a7623001OvphmenPUDUxoI","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/tmp/box/ws","root":"/"},"cost":0.00414555,"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"modelID":"mock-model","providerID":"mock","time":{"created":1795522464017,"completed":1795522467879},"finish":"stop"}');
CREATE TABLE "migration" (id TEXT PRIMARY KEY, time_completed INTEGER NOT NULL);
INSERT INTO "migration" VALUES('20260127222353_familiar_lady_ursula',1795522431281);
INSERT INTO "migration" VALUES('20260211171708_add_project_commands',1795522431300);
INSERT INTO "migration" VALUES('20260213144116_wakeful_the_professor',1795522431300);
INSERT INTO "migration" VALUES('20260225215848_workspace',1795522431300);
INSERT INTO "migration" VALUES('20260227213759_add_session_workspace_id',1795522431300);
INSERT INTO "migration" VALUES('20260228203230_blue_harpoon',1795522431306);
INSERT INTO "migration" VALUES('20260303231226_add_workspace_fields',1795522431306);
INSERT INTO "migration" VALUES('20260309230000_move_org_to_state',1795522431306);
INSERT INTO "migration" VALUES('20260312043431_session_message_cursor',1795522431306);
INSERT INTO "migration" VALUES('20260323234822_events',1795522431306);
INSERT INTO "migration" VALUES('20260410174513_workspace-name',1795522431306);
INSERT INTO "migration" VALUES('20260413175956_chief_energizer',1795522431306);
INSERT INTO "migration" VALUES('20260423070820_add_icon_url_override',1795522431306);
INSERT INTO "migration" VALUES('20260427172553_slow_nightmare',1795522431307);
INSERT INTO "migration" VALUES('20260428004200_add_session_path',1795522431307);
INSERT INTO "migration" VALUES('20260501142318_next_venus',1795522431307);
INSERT INTO "migration" VALUES('20260504145000_add_sync_owner',1795522431307);
INSERT INTO "migration" VALUES('20260507164347_add_workspace_time',1795522431307);
INSERT INTO "migration" VALUES('20260510033149_session_usage',1795522431307);
INSERT INTO "migration" VALUES('20260511000411_data_migration_state',1795522431307);
INSERT INTO "migration" VALUES('20260511173437_session-metadata',1795522431307);
INSERT INTO "migration" VALUES('20260601010001_normalize_storage_paths',1795522431307);
INSERT INTO "migration" VALUES('20260601202201_amazing_prowler',1795522431307);
INSERT INTO "migration" VALUES('20260602002951_lowly_union_jack',1795522431309);
INSERT INTO "migration" VALUES('20260602182828_add_project_directories',1795522431309);
INSERT INTO "migration" VALUES('20260603001617_session_message_projection_indexes',1795522431309);
INSERT INTO "migration" VALUES('20260603040000_session_message_projection_order',1795522431309);
INSERT INTO "migration" VALUES('20260603141458_session_input_inbox',1795522431309);
INSERT INTO "migration" VALUES('20260603160727_jittery_ezekiel_stane',1795522431309);
INSERT INTO "migration" VALUES('20260604172448_event_sourced_session_input',1795522431309);
INSERT INTO "migration" VALUES('20260605003541_add_session_context_snapshot',1795522431309);
INSERT INTO "migration" VALUES('20260605042240_add_context_epoch_agent',1795522431309);
INSERT INTO "migration" VALUES('20260611035744_credential',1795522431324);
INSERT INTO "migration" VALUES('20260611192811_lush_chimera',1795522431325);
INSERT INTO "migration" VALUES('20260612174303_project_dir_strategy',1795522431325);
INSERT INTO "migration" VALUES('20260622142730_simplify_session_context_epoch',1795522431325);
INSERT INTO "migration" VALUES('20260622170816_reset_v2_session_state',1795522431325);
INSERT INTO "migration" VALUES('20260622202450_simplify_session_input',1795522431325);
INSERT INTO "migration" VALUES('20260714141136_session-message-legacy-writer-compat',1795522431325);
INSERT INTO "migration" VALUES('20260828074139_kilocode_board',1795522431325);
INSERT INTO "migration" VALUES('20260903104806_kilocode_board_reset',1795522431325);
INSERT INTO "migration" VALUES('20260907102000_kilocode_model_usage_index',1795522431325);
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO "part" VALUES('prt_20d7a763d0013AWmP8YJPgRahX','msg_20d7a7623001OvphmenPUDUxoI','ses_df285dee8ffeV2DbgM5VeiVEKj',1795522459202,1795522459212,'{"type":"text","text":"Try"}');
INSERT INTO "part" VALUES('prt_20d7a96f4001rVDBg48cF70L0q','msg_20d7a8911001ty44mqwNYpejKm','ses_df285dee8ffeV2DbgM5VeiVEKj',1795522467572,1795522467575,'{"type":"step-start","time":{"start":1795522467563}}');
INSERT INTO "part" VALUES('prt_20d7a96fb001016SNCH7vJUkne','msg_20d7a8911001ty44mqwNYpejKm','ses_df285dee8ffeV2DbgM5VeiVEKj',1795522467580,1795522467721,'{"type":"text","text":"Went well.","time":{"start":1795522467579,"end":1795522467713}}');
INSERT INTO "part" VALUES('prt_20d7a9807001xmeKOpKoa07YQt','msg_20d7a8911001ty44mqwNYpejKm','ses_df285dee8ffeV2DbgM5VeiVEKj',1795522467847,1795522467849,'{"reason":"stop","type":"step-finish","time":{"start":1795522467563,"end":1795522467840,"elapsed":277},"metrics":{"generation":97.47292418772564,"source":"computed"},"tokens":{"total":1538,"input":1137,"output":27,"reasoning":0,"cache":{"write":63,"read":311}},"cost":0.00414555}');
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
INSERT INTO "project" VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795522433897,1795522433897,NULL,'[]',NULL);
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
INSERT INTO "session" VALUES('ses_df285dee8ffeV2DbgM5VeiVEKj','global',NULL,NULL,'shiny-circuit','/tmp/box/ws','tmp/box/ws','Try','7.7.7',NULL,0,0,0,NULL,NULL,0.00414555,1137,27,0,311,63,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"suggest","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','code','{"id":"mock-model","providerID":"mock","variant":"default"}',1795522437399,1795522468171,NULL,NULL);
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
