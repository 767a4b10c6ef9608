/** The options of a command line by their name without dashes; "" has what stands alone, such as the command itself. */
export function optionsOf(command: string): ReadonlyMap<string, string> {
  const options = new Map<string, string>();
  const add = (name: string, value: string) => {
    options.set(name, [options.get(name) ?? "", value].filter((part) => part !== "").join(" "));
  };
  let open: string | undefined;
  for (const word of command.split(/\s+/).filter((part) => part !== "")) {
    const [, name, value] = /^--?([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (name === undefined) {
      add(open ?? "", word);
      open = undefined;
      continue;
    }
    add(name, value ?? "");
    open = value === undefined ? name : undefined;
  }
  return options;
}

/** Names of the options that differ. */
export function differentOptions(left: string, right: string): readonly string[] {
  const [one, other] = [optionsOf(left), optionsOf(right)];
  return [...new Set([...one.keys(), ...other.keys()])].filter((name) => one.get(name) !== other.get(name));
}

/** Options that choose what is built and where it goes: they are a part of the configuration. */
const choosing = new Set([
  ...["p", "profile", "f", "filename", "m", "module", "n", "namespace", "kube-context", "default-repo"],
  ...["d", "platform", "build-image", "b", "set", "set-value-file", "config"],
]);

export function isConfiguration(option: string): boolean {
  return choosing.has(option);
}
