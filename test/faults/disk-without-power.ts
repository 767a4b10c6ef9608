import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";

const exec = promisify(execFile);

/** Stops an ext4 file system without writing what only the page cache has (EXT4_IOC_SHUTDOWN with NOLOGFLUSH). Node.js has no ioctl. */
const shutDown =
  'open(my $root, "<", $ARGV[0]) or die; ioctl($root, 0x8004587D, my $how = pack("L", 2)) or die "ioctl: $!"';

const size = "1G";

/** An ext4 file system of its own, in a file, that can lose its power. Needs root and loop devices. */
export class DiskWithoutPower implements AsyncDisposable {
  readonly folder: string;
  readonly #image: string;
  readonly #cleanup: AsyncDisposable;

  private constructor(folder: string, image: string, cleanup: AsyncDisposable) {
    this.folder = folder;
    this.#image = image;
    this.#cleanup = cleanup;
  }

  /** Undefined where no file system can be mounted. */
  static async create(): Promise<DiskWithoutPower | undefined> {
    const temporary = await temporaryFolder();
    const [folder, image] = [join(temporary.folder, "disk"), join(temporary.folder, "image")];
    const disk = new DiskWithoutPower(folder, image, temporary);
    try {
      await mkdir(folder);
      await exec("truncate", ["-s", size, image]);
      await exec("mkfs.ext4", ["-q", image]);
      await disk.#mount();
      return disk;
    } catch {
      await rm(temporary.folder, { recursive: true, force: true });
      return undefined;
    }
  }

  /** From here on nothing more reaches the disk, and what was not synced may be lost. */
  async cut(): Promise<void> {
    await exec("perl", ["-e", shutDown, this.folder]);
  }

  /** Resolves when the file system is there again. No process may have files open in it. */
  async powerOn(): Promise<void> {
    await exec("umount", [this.folder]);
    await this.#mount();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await exec("umount", ["--lazy", this.folder]);
    await this.#cleanup[Symbol.asyncDispose]();
  }

  async #mount(): Promise<void> {
    await exec("mount", ["-o", "loop", this.#image, this.folder]);
  }
}
