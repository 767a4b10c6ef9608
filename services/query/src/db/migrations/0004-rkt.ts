import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** rkt's hosts: their pods and images, also those that are gone, and the codes that runs ended with. */
export const rkt: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const ofSession = `
  session text not null,
  source text not null`;

const statements = [
  `alter table operations add column exit_code int`,
  `create table rkt_pods (${ofSession},
    pod text not null,
    name text not null,
    state text not null,
    pid int,
    cgroup text not null,
    created_at timestamptz,
    started_at timestamptz,
    gc_marked_at timestamptz,
    apps int not null,
    gone boolean not null,
    gone_at timestamptz,
    first_position bigint not null,
    last_position bigint not null,
    primary key (session, pod)
  )`,
  `create table rkt_apps (${ofSession},
    pod text not null,
    app text not null,
    image_id text not null,
    image_name text not null,
    image_version text not null,
    state text not null,
    exit_code int,
    gone boolean not null,
    gone_at timestamptz,
    first_position bigint not null,
    last_position bigint not null,
    primary key (session, pod, app)
  )`,
  `create table rkt_images (${ofSession},
    image text not null,
    name text not null,
    version text not null,
    imported_at timestamptz,
    size bigint not null,
    labels jsonb not null,
    gone boolean not null,
    gone_at timestamptz,
    first_position bigint not null,
    last_position bigint not null,
    primary key (session, image)
  )`,
  `create table rkt_networks (${ofSession},
    pod text not null,
    network text not null,
    ipv4 text not null,
    ipv6 text not null,
    primary key (session, pod, network)
  )`,
];
