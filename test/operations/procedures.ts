/** The tests that carry out a section of docs/operations.md, or bring about what its alert is about: path and title. */
export const procedures: Readonly<Record<string, readonly (readonly [path: string, title: string])[]>> = {
  Install: [
    [
      "infra/dist/debian-package.long.test.ts",
      "is installed with its units and secrets of its own, and purged without a trace",
    ],
  ],
  "Users of NATS": [
    ["test/operations/nats-users.test.ts", "every service works whole with its user"],
    [
      "test/operations/nats-users.test.ts",
      "an operator's user, once it is turned on, changes streams, and writes no event",
    ],
    [
      "test/operations/nats-users.long.test.ts",
      "the command line makes tokens, backs up, restores and begins a new epoch as its own user",
    ],
    ["infra/docker/compose.test.ts", "gives each service a user of NATS of its own, and NATS the passwords of all"],
    ["infra/helm/chart.long.test.ts", "gives each service a user of NATS of its own, and a person another one"],
  ],
  "Roles of Postgres": [
    ["test/operations/postgres-roles.test.ts", "records, answers and rebuilds without being a superuser"],
    [
      "services/query/src/db/access/readers.long.test.ts",
      "sees its own rows in every relation, whatever it does, and goes when it is dropped",
    ],
  ],
  "TLS between services": [
    ["test/operations/certificates.test.ts", "nothing is plaintext: neither NATS, nor Postgres, nor query and ingest"],
  ],
  Restart: [
    ["test/operations/restart.long.test.ts", "one service after the other is restarted, in either order"],
    ["test/operations/restart.long.test.ts", "everything is shut down, and the services start before what they need"],
    ["test/operations/restart.long.test.ts", "nothing is lost and nothing comes twice, whatever was restarted"],
  ],
  Upgrade: [
    ["test/operations/upgrade.long.test.ts", "opens in this version"],
    ["test/operations/upgrade.long.test.ts", "refuses what a newer version has written"],
  ],
  "Back up and restore": [
    [
      "infra/dist/debian-boot.long.test.ts",
      "comes back from a backup with the commands that the page has, while it leaves NATS running",
    ],
    [
      "packages/cli/src/commands/backup/run.long.test.ts",
      "a log that was backed up comes back: positions from before are good, what came after is foreign",
    ],
    [
      "test/operations/backup.long.test.ts",
      "a backup comes back in empty servers, with all workspaces, their tokens and positions",
    ],
    [
      "packages/cli/src/commands/restore/run.long.test.ts",
      "a log and its tokens come back to a NATS of the user's: nothing is replaced unasked, and no revoked token is good again",
    ],
  ],
  "Rebuild the tables": [
    [
      "services/query/src/projecting/rebuild.long.test.ts",
      "builds the same tables from the log, beside a query that keeps following",
    ],
  ],
  "The services' key": [
    ["test/operations/keys.test.ts", "another services' key takes effect with a restart, and the old one gets nowhere"],
  ],
  "Passwords of NATS": [
    [
      "test/operations/keys.long.test.ts",
      "another password of NATS takes effect with a restart of the server and of its service, and nothing is lost",
    ],
  ],
  Certificates: [
    [
      "test/operations/renewal.long.test.ts",
      "renewed certificates are used without a restart of any service, and recording goes on",
    ],
    [
      "test/operations/authority.long.test.ts",
      "another authority takes the place of the first, while recording goes on",
    ],
    [
      "services/gateway/src/transports/tls.test.ts",
      "a renewed certificate is shown by every listener, without an end of what is under way; a broken one is not",
    ],
  ],
  Grow: [
    ["test/operations/grow.long.test.ts", "a second gateway serves what the first does, and goes on without it"],
    [
      "test/operations/grow.long.test.ts",
      "a log of one replica gets three while it is written, and then bears the loss of a server",
    ],
    [
      "test/faults/standby.test.ts",
      "a second ingest never dials while the first lives, and continues where the killed one stopped",
    ],
    ["services/query/src/query.test.ts", "one query projects; the standby answers, and takes over"],
  ],
  "A second query": [
    [
      "test/faults/take-over.long.test.ts",
      "a workspace is taken over while it is recorded and read, through kills at each step",
    ],
    ["test/faults/take-over.long.test.ts", "a workspace is given back while it is recorded and read"],
    [
      "services/query/src/take-over.test.ts",
      "of two queries that are set to take a workspace over one does, and the other says which has it",
    ],
  ],
  Watch: [
    [
      "test/operations/alerts.test.ts",
      "every metric and label in the alerts and recording rules is one that the services serve",
    ],
  ],
  "The log's disk is full": [
    [
      "services/ingest/src/full-disk.nats.test.ts",
      "a log without room is reported, and with room recording goes on by itself with all that waited",
    ],
  ],
  "NATS is away, or its data are lost": [
    [
      "services/ingest/src/ingest-log-away.long.test.ts",
      "kills of NATS in the middle of it lose nothing and repeat nothing",
    ],
    [
      "packages/cli/src/commands/restore/run.long.test.ts",
      "a log and its tokens come back to a NATS of the user's: nothing is replaced unasked, and no revoked token is good again",
    ],
  ],
  "Postgres is away, or its data are lost": [
    ["services/query/src/query-away.long.test.ts", "waits for a database that is away, and continues where it stopped"],
    ["test/operations/upgrade.long.test.ts", "makes the tables anew in an empty database"],
    ["services/query/src/query.test.ts", "tables that somebody drops while query runs come back by %s"],
  ],
  "The log is damaged": [
    [
      "services/ingest/src/damage/damage.nats.long.test.ts",
      "a log that lost its end is refused: no position is given twice",
    ],
    [
      "packages/cli/src/commands/restore/run.long.test.ts",
      "a log that lost its end goes on under new positions when it is said to",
    ],
    [
      "services/ingest/src/damage/lost-log.nats.test.ts",
      "with new-epoch such a log goes on with its events and positions, over restarts",
    ],
    [
      "services/query/src/projecting/rebuild-tables.long.test.ts",
      "refuses to replace the tables of another log, which may be all that is left of it",
    ],
    [
      "packages/shared/src/log/dropped.long.test.ts",
      "a file that is missing while nats-server runs is an error with a way on, and ends no reader as complete",
    ],
  ],
  "The log drops its oldest events": [
    [
      "services/query/src/query.test.ts",
      "stops where a limit of the log has dropped what the tables lack, and a rebuild makes them from what there is",
    ],
  ],
  Runbook: [
    [
      "test/operations/alert-expressions.long.test.ts",
      "every alert has samples for which it fires, and for which it does not",
    ],
  ],
  TapedeckServiceDown: [
    ["test/operations/restart.long.test.ts", "one service after the other is restarted, in either order"],
  ],
  TapedeckNotReady: [
    [
      "test/operations/alert-conditions.long.test.ts",
      "of a log that is away: what is not ready, waits, is not acknowledged and is lost, and of its end",
    ],
    ["services/query/src/query-away.long.test.ts", "waits for a database that is away, and continues where it stopped"],
  ],
  TapedeckLogDiskFull: [
    [
      "services/ingest/src/full-disk.nats.test.ts",
      "a log without room is reported, and with room recording goes on by itself with all that waited",
    ],
  ],
  TapedeckWorkspaceFull: [
    [
      "services/ingest/src/log-quota.nats.test.ts",
      "a log that is full by its settings is said to be, and goes on with all that waited once it may grow",
    ],
  ],
  TapedeckLogDamaged: [
    [
      "services/ingest/src/damage/damage.nats.long.test.ts",
      "the log is read again and again while ingest runs: what is lost meanwhile is recorded",
    ],
  ],
  TapedeckRecordingLost: [
    [
      "test/operations/alert-conditions.long.test.ts",
      "of a log that is away: what is not ready, waits, is not acknowledged and is lost, and of its end",
    ],
    [
      "packages/tap/src/spill/spill.test.ts",
      "past both bounds drops the newest frames, and says so when there is room",
    ],
  ],
  TapedeckSpillGrows: [
    [
      "test/operations/alert-conditions.long.test.ts",
      "of a log that is away: what is not ready, waits, is not acknowledged and is lost, and of its end",
    ],
  ],
  TapedeckPublishFailures: [
    [
      "test/operations/alert-conditions.long.test.ts",
      "of a log that is away: what is not ready, waits, is not acknowledged and is lost, and of its end",
    ],
    [
      "services/ingest/src/record/journal/writer-kills.random.test.ts",
      "kills of the server and lost answers at random moments lose nothing and repeat nothing",
    ],
  ],
  TapedeckHostAway: [["test/operations/alert-conditions.long.test.ts", "of a rkt host that is away, until it is back"]],
  TapedeckFramesUnreadable: [["test/operations/alert-conditions.long.test.ts", "of frames that can't be read"]],
  TapedeckTablesBehind: [
    [
      "test/operations/alert-conditions.long.test.ts",
      "of tables that are behind, as a long statement of a reader makes them",
    ],
  ],
  TapedeckProjectingInterrupted: [
    ["test/operations/alert-conditions.long.test.ts", "of a database that breaks projecting off"],
  ],
  TapedeckEventsSetAside: [
    [
      "services/query/src/projecting/set-aside.long.test.ts",
      "sets aside what can't be applied, and applies everything else as if that had not been recorded",
    ],
    [
      "services/query/src/projecting/set-aside.long.test.ts",
      "applies everything after an erasure that a foreign key%s of somebody else's table blocks",
    ],
  ],
  TapedeckStateDrift: [
    [
      "test/skaffold/drift.long.test.ts",
      "the drift check reports a deviating GetState once, and answers as Skaffold does from then on",
    ],
  ],
  TapedeckSinkBehind: [
    [
      "services/gateway/src/sinks/sinks.nats.test.ts",
      "waits as long as its target asks, and has one request in flight",
    ],
  ],
  TapedeckSinkParked: [
    [
      "services/gateway/src/sinks/sinks.nats.test.ts",
      "parks an event that its target refuses, goes on, and retries it by hand",
    ],
  ],
  TapedeckBuildsFail: [
    [
      "services/query/src/views/totals/totals.test.ts",
      "an operation that ended is counted once, with its duration, and what loops waited for",
    ],
  ],
  TapedeckMetricsIncomplete: [
    [
      "services/query/src/totals/total-metrics.test.ts",
      "the page leaves out durations first, then projects not used for longest, and says how many",
    ],
  ],
  TapedeckInternalErrors: [
    ["test/operations/keys.test.ts", "another services' key takes effect with a restart, and the old one gets nowhere"],
  ],
  TapedeckEventLoopHeld: [
    ["packages/shared/src/service/loop-delay.test.ts", "gives everyone who reads the longest turn"],
  ],
  TapedeckFilesExhausted: [["test/operations/alert-conditions.long.test.ts", "of connections that use files"]],
  "Remove a workspace": [
    [
      "test/stack/workspaces.test.ts",
      "a removed workspace is answered by nothing from then on, others are untouched, and its name begins anew",
    ],
    [
      "test/faults/maintenance/remove-workspace.long.test.ts",
      "a removal is brought to its end, whatever is killed meanwhile, the name begins anew, and another workspace goes on",
    ],
  ],
  "How long it is kept": [
    ["test/stack/workspaces.test.ts", "the retention of a workspace is changed over the API and by the CLI"],
    [
      "services/ingest/src/record/retention/session-expiry.nats.test.ts",
      "sessions that ended longer ago than their workspace keeps them go, one that goes on stays until it has ended",
    ],
  ],
  TapedeckCertificateExpires: [
    ["test/operations/certificates.test.ts", "metrics say until when the certificates of query and ingest are valid"],
  ],
};
