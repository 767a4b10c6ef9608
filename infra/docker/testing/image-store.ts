import { join } from "node:path";
import { onMachine } from "./on-machine.ts";

/** A step of buildah on a container that becomes an image: its command, and what follows the container's name. */
export type BuildStep = readonly [command: "add" | "copy" | "run", ...words: readonly string[]];

/** Images in a folder of their own, made by buildah, which needs no engine that runs beside it. */
export class ImageStore {
  readonly #flags: readonly string[];

  constructor(folder: string) {
    const at = (name: string) => join(folder, name);
    // Plain copies of files: that works everywhere, also within an overlay.
    this.#flags = ["--root", at("storage"), "--runroot", at("run"), "--storage-driver", "vfs"];
  }

  /** Makes an image of a base and steps, with these variables in the environment of what runs there. */
  async commit(name: string, base: string, steps: readonly BuildStep[], env: Readonly<Record<string, string>> = {}) {
    const container = (await this.#buildah("from", ["--pull-never", base])).trim();
    for (const [command, ...words] of steps) {
      const flags = command === "run" ? ["--isolation", "chroot"] : [];
      await this.#buildah(command, [...flags, container, ...(command === "run" ? ["--"] : []), ...words]);
    }
    const variables = Object.entries(env).flatMap(([key, value]) => ["--env", `${key}=${value}`]);
    if (variables.length > 0) await this.#buildah("config", [...variables, container]);
    await this.#buildah("commit", ["--rm", "--quiet", container, `localhost/${name}`]);
  }

  /** Builds a Dockerfile, whose base images are already here. */
  async build(name: string, dockerfile: string, context: string): Promise<void> {
    const flags = ["--isolation", "chroot", "--pull-never", "--format", "docker", "--file", dockerfile];
    await this.#buildah("build", [...flags, "--tag", `localhost/${name}`, context]);
  }

  /** Writes an image to somewhere else, in skopeo's notation: `oci:folder:tag`, `dir:folder`. */
  async push(name: string, to: string): Promise<void> {
    await this.#buildah("push", ["--quiet", `localhost/${name}`, to]);
  }

  async #buildah(command: string, words: readonly string[]): Promise<string> {
    return onMachine("buildah", [...this.#flags, command, ...words]);
  }
}
