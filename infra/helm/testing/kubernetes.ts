import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { KubernetesObject } from "./chart.ts";

/** The packages with schemas, by group of the API; else Kubernetes itself. */
const packages: Readonly<Record<string, string>> = {
  "gateway.networking.k8s.io": "@kubernetes-models/gateway-api",
  "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
  "postgresql.cnpg.io": "@kubernetes-models/cloudnative-pg",
};

/** A schema, compiled by Ajv. */
type Validate = ((data: unknown) => boolean) & {
  readonly errors?: readonly { readonly instancePath: string; readonly keyword: string; readonly params: object }[];
};

/**
 * What Kubernetes would say against an object, one sentence each: what breaks its schema, and fields that its schema does
 * not have. `modules`: where the packages with schemas are.
 */
export async function complaints(object: KubernetesObject, modules: string): Promise<readonly string[]> {
  const { apiVersion, kind, metadata } = object;
  const validate = await schemaOf(apiVersion, kind, modules);
  if (validate === undefined) return [`${apiVersion} ${kind}: there is no such kind`];
  const observed = new ObservedAt();
  const isValid = validate(observed.watch(object, ""));
  const broken = isValid ? [] : (validate.errors ?? []);
  return [
    ...broken.map(({ instancePath, keyword, params }) => `${instancePath}: ${keyword} ${JSON.stringify(params)}`),
    ...observed.unknown().map((path) => `there is no field ${path}`),
  ].map((sentence) => `${kind} ${metadata.name}: ${sentence}`);
}

/** A model checks a copy of its data; the schema that it checks with is named in its imports. */
async function schemaOf(apiVersion: string, kind: string, modules: string): Promise<Validate | undefined> {
  const group = apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "";
  const model = join(modules, packages[group] ?? "kubernetes-models", apiVersion, `${kind}.js`);
  if (!existsSync(model)) return undefined;
  const [, schema] = /import\{validate\}from"([^"]+)"/.exec(readFileSync(model, "utf8")) ?? [];
  if (schema === undefined) return undefined;
  return (await import(pathToFileURL(join(dirname(model), schema)).href)).validate;
}

/**
 * Learns which fields a compiled schema validates: it ignores those that it does not know, which Kubernetes would
 * refuse or drop.
 */
class ObservedAt {
  readonly #objects: { readonly path: string; readonly of: object; readonly keys: Set<string> }[] = [];
  readonly #proxies = new WeakMap<object, unknown>();

  watch(value: unknown, path: string): unknown {
    if (typeof value !== "object" || value === null) return value;
    const known = this.#proxies.get(value);
    if (known !== undefined) return known;
    const keys = new Set<string>();
    const proxy = new Proxy(value, {
      get: (target, key) => {
        const found: unknown = Reflect.get(target, key);
        if (typeof key !== "string" || !Object.hasOwn(target, key)) return found;
        keys.add(key);
        return this.watch(found, `${path}/${key}`);
      },
    });
    this.#objects.push({ path, of: value, keys });
    this.#proxies.set(value, proxy);
    return proxy;
  }

  /** Fields beside others that were validated. An object of which none was may hold anything. */
  unknown(): readonly string[] {
    return this.#objects
      .filter(({ of, keys }) => !Array.isArray(of) && keys.size > 0)
      .flatMap(({ path, of, keys }) => Object.keys(of).flatMap((key) => (keys.has(key) ? [] : [`${path}/${key}`])));
  }
}
