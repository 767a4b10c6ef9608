const ofSession = `
  session text not null,
  source text not null`;

/** rkt's hosts: their pods and images, including those that are gone. */
export const rktTables: readonly string[] = [
  `create table rkt_pods (${ofSession},
    pod text not null,
    -- The name that a kubelet gave the pod, else its id.
    name text not null,
    -- Without rkt's prefix. UNDEFINED: rkt is deleting the pod, and what else it reports of it is ignored.
    state text not null,
    pid int,
    cgroup text not null,
    created_at timestamptz,
    started_at timestamptz,
    gc_marked_at timestamptz,
    apps int not null,
    -- No longer on the host.
    gone boolean not null,
    gone_at timestamptz,
    -- Positions of the events that first reported the pod and that last changed the row.
    first_position bigint not null,
    last_position bigint not null,
    primary key (session, pod)
  )`,
  `create table rkt_apps (${ofSession},
    pod text not null,
    app text not null,
    -- As in the pod's manifest.
    image_id text not null,
    image_name text not null,
    image_version text not null,
    state text not null,
    -- Null while the app runs, unless rkt reports a code. 0 also where the code is unknown.
    exit_code int,
    -- Removed from its pod, or gone with it.
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
    -- Bytes.
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
