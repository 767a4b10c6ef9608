import pg from "pg";

/** Which of several servers takes writes. */
type Address = { readonly host: string; readonly port: number };

/** None of several servers can be reached and takes writes, as in the middle of a fail-over. */
export class NoPrimaryError extends Error {
  override readonly name = "NoPrimaryError";
}

/** How long a server may take to report its role. */
const answerMs = 2_000;

type Callback = ((error: Error) => void) | ((error: null, client: pg.Client) => void);

const severalHosts = /^(postgres(?:ql)?:\/\/(?:[^@/]*@)?)([^/?]+)(.*)$/;

/**
 * One URL for each host of a URL with several, which libpq defines: "postgres://user@a:5432,b:5432/tapedeck". Query writes,
 * so `target_session_attrs` is always taken as "read-write".
 */
export function hostUrls(url: string): readonly string[] {
  const [, before = "", hosts = "", after = ""] = severalHosts.exec(url) ?? [];
  if (!hosts.includes(",")) return [url];
  const rest = after.replace(/([?&])target_session_attrs=[^&]*&?/, "$1").replace(/[?&]$/, "");
  return hosts.split(",").map((host) => `${before}${host.trim()}${rest}`);
}

/**
 * A client for `new pg.Pool({ Client })` that connects to the one of these servers that takes writes now. pg itself knows
 * of one host. Each connection asks again: after a fail-over the server that was the primary may be back as a standby,
 * with old rows.
 */
export function clientOfPrimary(urls: readonly string[]): typeof pg.Client {
  return class PrimaryClient extends pg.Client {
    override connect(): Promise<pg.Client>;
    override connect(callback: Callback): void;
    override connect(callback?: Callback): Promise<pg.Client> | undefined {
      const found = this.#find();
      if (callback === undefined) return found.then(() => super.connect());
      found.then(
        () => super.connect(callback),
        (error: Error) => (callback as (error: Error) => void)(error),
      );
      return undefined;
    }

    async #find(): Promise<void> {
      Object.assign(this, await primaryOf(urls));
    }
  };
}

/** @throws NoPrimaryError with each server's reason */
async function primaryOf(urls: readonly string[]): Promise<Address> {
  try {
    return await Promise.any(urls.map(asPrimary));
  } catch (cause) {
    const errors: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
    const reasons = errors.map((error) => (error instanceof Error ? error.message || error.name : String(error)));
    throw new NoPrimaryError(`no Postgres takes writes: ${reasons.join("; ")}`, { cause });
  }
}

/** Rejects unless the server can be reached and takes writes. */
async function asPrimary(url: string): Promise<Address> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: answerMs, query_timeout: answerMs });
  client.on("error", () => {}); // the question reports the loss
  const { host, port } = client;
  try {
    await client.connect();
    const { rows } = await client.query<{ standby: boolean }>("select pg_is_in_recovery() as standby");
    if (rows[0]?.standby !== false) throw new Error(`${host}:${port} is a standby`);
    return { host, port };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message || cause.name : String(cause);
    throw new Error(why.includes(String(port)) ? why : `${host}:${port}: ${why}`, { cause });
  } finally {
    await client.end().catch(() => {});
  }
}
