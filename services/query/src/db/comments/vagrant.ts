import { common, type RelationComment, shared } from "./comment.ts";

const ofResource = {
  ...shared("session", "source", "gone", "gone_at", "first_position", "last_position", "message"),
  id: "The server's id of the resource.",
};
const command = {
  ...shared("workspace", "developer", "project", "source", "labels", "session", "duration_ms", "outcome"),
  ...shared("error_code", "error", "start_position", "start_position_text"),
  command: "The command: up, halt, box add …",
  job: "Id of its job: vagrant_jobs.job.",
  args: "Arguments that the user gave, as JSON; null: not recorded.",
  started_at: "When it began; if that was not recorded, when it ended.",
  exit_code: "Its exit code; null while it runs, and where a failed one reported 0.",
  vagrant_version: "Version that Vagrant's server reports.",
};

/** Vagrant's servers. */
export const vagrantComments: Readonly<Record<string, RelationComment>> = {
  command_times: {
    about: "One row for each command that a Vagrant server ran.",
    columns: {
      ...command,
      scope: "What it is for: basis, project or target; empty or null: not known.",
      scope_name: "Name of that basis, project or target.",
    },
  },
  vagrant_command_times: {
    about: "One row for each command that a Vagrant server ran, with its machine and box.",
    columns: {
      ...command,
      machine: "Name of the machine; null: all of a project or basis.",
      provider: "Its provider, as last recorded; null: not known.",
      box: "Name of its box, as last recorded; null: not known.",
      box_version: "Version of that box; null: not known.",
    },
  },
  vagrant_jobs: {
    about: "One row for each job of a Vagrant server.",
    columns: {
      ...shared("session", "source", "outcome", "error_code", "error"),
      ...shared("first_position", "last_position", "message"),
      job: "Id of the job (ULID).",
      operation: "What the job does: command, init, auth …; empty: not known.",
      command: "For operation command: up, box add …; otherwise empty.",
      args: "For operation command: the arguments that the user gave, as JSON.",
      scope: "What the job is for: basis, project, target, or empty.",
      scope_id: "Id of that basis, project or target.",
      scope_name: "Name of that basis, project or target.",
      runner: "Id of the runner that the job is for; empty: any.",
      state: "State that the server last reported; SUCCESS also for a failed command (see outcome).",
      stale: "Whether it is of a command that crashed or runs elsewhere.",
      queued_at: "When it was queued; null: not known.",
      assigned_at: "When a runner got it; null: none did.",
      started_at: "When a runner began it; null: none did.",
      cancel_requested_at: "When it was asked to cancel; null: never.",
      completed_at: "When it was completed; null while it runs, or canceled before it began.",
      expires_at: "When the server drops it from its queue; null: never.",
      exit_code: "Exit code of a command; null for others, and for a failed one that reported 0.",
    },
  },
  vagrant_targets: {
    about: "One row for each target (machine), including those that are gone.",
    columns: {
      ...ofResource,
      name: "Name of the machine in the Vagrantfile.",
      project_id: "Id of its project.",
      project_name: "Name of its project.",
      state: "State in the server's words; DESTROYED also for a machine that is powered off.",
      provider: "Its provider; empty: not known.",
      uuid: "Its UUID in the server.",
      machine_id: "Id that the provider gives the machine; empty: none.",
      machine_state: "State of the machine, by the provider.",
      box_name: "Name of its box.",
      box_version: "Version of its box.",
    },
  },
  vagrant_projects: {
    about: "One row for each project, including those that are gone.",
    columns: {
      ...ofResource,
      name: "Name of the project.",
      path: "Its folder on the developer's machine.",
      basis_id: "Id of its basis.",
      basis_name: "Name of its basis.",
      remote_enabled: "Whether it may run on remote runners.",
    },
  },
  vagrant_bases: {
    about: "One row for each basis, including those that are gone.",
    columns: {
      ...ofResource,
      name: "Name of the basis.",
      path: "Its folder on the developer's machine.",
      remote_enabled: "Whether it may run on remote runners.",
    },
  },
  vagrant_boxes: {
    about: "One row for each box, including those that are gone.",
    columns: {
      ...ofResource,
      name: "Name of the box.",
      provider: "Provider that it is for.",
      version: "Its version.",
      directory: "Its folder on the developer's machine.",
      metadata_url: "Address of its metadata; empty: none.",
    },
  },
  vagrant_runners: {
    about: "One row for each runner.",
    columns: {
      ...ofResource,
      gone: `${common.gone} Vagrant does not report that a runner went.`,
      by_id_only: "Whether it takes only jobs that name it: a command's own runner.",
      components: "Its plugins' components, as JSON.",
    },
  },
};
