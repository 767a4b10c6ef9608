import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { logSince, type ServerCommand, spawnServer, untilReady } from "@tapedeck/infra/local/server-process";
import { ownPort } from "@tapedeck/shared/testing/own-port";

/** Servers of other products, with their data in a folder of the bench. */

export type PeerServer = AsyncDisposable & { readonly pid: number; readonly port: number };

/** A peer that can't be measured on this machine, and the reason in a sentence. */
export class Missing {
  readonly why: string;

  constructor(why: string) {
    this.why = why;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Every append is on disk before it is answered. */
export async function startRedis(folder: string): Promise<PeerServer | Missing> {
  const port = await ownPort();
  const settings = [
    ...[`bind 127.0.0.1`, `port ${port}`, `dir ${folder}`, "daemonize no", `save ""`],
    ...["appendonly yes", "appendfsync always"],
  ];
  return start("redis-server", [], folder, port, settings);
}

const howTo = {
  "redis-server": "redis-server is not installed (Debian: apt-get install redis-server)",
  nginx: "nginx with nchan is not installed (Debian: apt-get install nginx-light libnginx-mod-nchan)",
} as const;

/** How many messages it keeps for readers that come back. */
export const nchanKeeps = 20_000;
const nchanModule = "/usr/lib/nginx/modules/ngx_nchan_module.so";

/** Messages are kept in memory for clients that reconnect. */
export async function startNchan(folder: string): Promise<PeerServer | Missing> {
  if (!existsSync(nchanModule)) return new Missing(howTo.nginx);
  const port = await ownPort();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const settings = [
    ...[`load_module ${nchanModule};`, "daemon off;", "worker_processes 1;", `pid ${folder}/nginx.pid;`],
    ...["error_log stderr;", "events { worker_connections 8192; }", "http {", "access_log off;"],
    ...temporary.map((name) => `${name}_temp_path ${folder}/${name};`),
    ...["nchan_shared_memory_size 512M;", "keepalive_requests 10000000;", "client_body_buffer_size 1m;"],
    ...[`nchan_message_buffer_length ${nchanKeeps};`, "server {", `listen 127.0.0.1:${port};`, "nchan_channel_id $1;"],
    ...["location ~ ^/publish/(\\w+)$ { nchan_publisher; }"],
    ...subscriberLocation("subscribe", "newest"),
    ...subscriberLocation("resume", "oldest"),
    ...["} }"],
  ];
  return start("nginx", ["-p", folder, "-c"], folder, port, settings);
}

function subscriberLocation(name: string, first: "newest" | "oldest"): readonly string[] {
  return [
    ...[`location ~ ^/${name}/(\\w+)$ {`, "nchan_subscriber websocket eventsource;"],
    `nchan_subscriber_first_message ${first}; }`,
  ];
}

async function start(
  command: keyof typeof howTo,
  args: readonly string[],
  folder: string,
  port: number,
  settings: readonly string[],
): Promise<PeerServer | Missing> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, `${command}.conf`);
  await writeFile(file, `${settings.join("\n")}\n`);
  const logFile = join(folder, `${command}.log`);
  const spec: ServerCommand = { command, args: [...args, file], logFile, stopSignal: "SIGTERM", mark: file };
  try {
    const server = await spawnServer(spec);
    const ready = await untilReady(server, async () => ((await answers(port)) ? true : undefined));
    if (ready === undefined) return new Missing(`${command} did not start: ${(await logSince(logFile, 0)).trim()}`);
    return { pid: server.pid, port, [Symbol.asyncDispose]: server.stop };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Missing(howTo[command]);
    throw error;
  }
}

function answers(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}
