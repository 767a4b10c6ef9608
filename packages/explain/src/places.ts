/** Where an output says that something is wrong. */
export type CodePlace = { readonly file: string; readonly line: number | null };

const extensions = new Set(
  `adoc asm astro awk cron hx y bash bats bazel bat bicep bzl c cabal cc cfg cjs clj cljs cmake cmd coffee conf config cpp cr cs csproj css csv cts cu cxx
  d dart dockerfile edn ejs el elm env erb erl ex exs f90 feature fish fs fsproj fsx gemspec go gql gradle graphql groovy gyp h haml handlebars hbs
  hcl hh hpp hrl hs html hxx idl ini ipynb java jinja jinja2 jl js json json5 jsonc jsonl jsx kt kts lean less lhs lock lua m md mdx mjs mk ml mli
  mm mod mts nim nix nu pas php phtml pl pm po properties proto ps1 psm1 pug purs py pyi pyx r rake rb re resx rkt rs rst s sass sbt scala scm
  scss service sh sln sol sql star svelte svg swift tcl tex tf tfvars thrift toml ts tsx txt unit v vala vb vbproj vhd vue wat work xml xsd yaml yml zig zsh
  j2 tpl tmpl rules mount socket timer rego cue dhall jsonnet libsonnet bxl hurl prisma puml`.split(/\s+/),
);
const names =
  /^(?:(?:GNU)?[Mm]akefile|Dockerfile|Containerfile|Vagrantfile|Jenkinsfile|Gemfile|Rakefile|Procfile|Justfile|justfile|Tiltfile|Brewfile|Podfile|Fastfile|BUILD|WORKSPACE|Berksfile|Capfile|Earthfile|Snakefile|SConstruct|SConscript|Guardfile|crontab|sshd?_config|hosts)(?:\.\w+)?$|^Dockerfile[.-]\w+|^\.[a-z]+rc$/;

const token = /[\p{L}\p{N}_@~+.$/\\[\]-]{2,400}/gu;

/** What follows the name of a file where a line is given. */
const numbered: readonly RegExp[] = [
  /:(\d{1,7})(?::\d+)?(?![\w.]*\w)/y,
  /:(\d{1,7})\.\d+(?:-[\d.]+)?(?=:)/y,
  /\((\d{1,7})(?:[,:]\s?\d+)*\)/y,
  /:\[(\d{1,7}),\d+\]/y,
  /["'`’”]?(?:,|:| on| at|, in \S{1,80})?,? line:? (\d{1,7})/y,
  /:line (\d{1,7})/y,
  /: (\d{1,7}): /y,
  /["'`]? \((?:line )?(\d{1,7})(?:[:,]\s?(?:column )?\d+)?\)/y,
  / (\d{1,7}):\d+(?!\S)/y,
  /["'`]?: \(?(?:line )?(\d{1,7})[,:] ?(?:column|col|char) ?\d+/y,
  /@(\d{1,7}):\d+/y,
];

/** Line and column, or the word: what stands before them is a file, whatever its name. */
const exact = /:\d{1,7}:\d{1,7}(?![\w.])|:\d{1,7}\.\d{1,7}-|["']?(?:,|:| on| at)? line:? \d/y;

/** All files with a line that a text names, in their order. Linear: each token is read once. */
export function placesIn(text: string): readonly CodePlace[] {
  const found: CodePlace[] = [];
  for (const { 0: word, index } of text.matchAll(token)) {
    const start = /^\[+(?![\w.]+\])/.exec(word)?.[0].length ?? 0;
    const end = index + word.length;
    exact.lastIndex = end;
    const isExact = exact.test(text) && /^[^\d:][^:]*\.[a-z]\w{0,7}$/.test(word);
    const file = fileOf(word.slice(start), text.slice(Math.max(0, index - 8), index + start), isExact);
    if (file === undefined) continue;
    const line = lineAfter(text, end);
    if (line !== undefined) found.push({ file, line });
  }
  return found;
}

/** The first file that a text names, with or without a line. */
export function fileIn(text: string): string | undefined {
  for (const { 0: word, index } of text.matchAll(token)) {
    const file = fileOf(word.replace(/\.$/, ""), text.slice(Math.max(0, index - 8), index));
    if (file !== undefined) return file;
  }
  return undefined;
}

function lineAfter(text: string, end: number): number | undefined {
  for (const pattern of numbered) {
    pattern.lastIndex = end;
    const line = pattern.exec(text)?.[1];
    if (line !== undefined) return Number(line);
  }
  return undefined;
}

/** The file that begins a text and that it is about: `app/errors.py: error: …`. */
export function subjectOf(text: string): CodePlace | undefined {
  const word =
    /^(?:\w{1,20} in |in |file: (?:file:\/\/)?|error: |\[error\] )?(?<word>[\w@~+./\\-]{2,400})(?: ?: | -|:\(|$)/.exec(
      text,
    )?.groups?.word;
  const file = word === undefined ? undefined : fileOf(word, "");
  return file === undefined ? undefined : { file, line: null };
}

/** A file as it is named; undefined for hosts, packages and numbers. */
function fileOf(word: string, before: string, isExact = false): string | undefined {
  if (/https?:$|[@=:]\/\/$/.test(before) || (before.endsWith(":") && /https?:$/.test(before))) return undefined;
  const isUrl = before.endsWith(":") && word.startsWith("//");
  if (isUrl && !/file:$|webpack:$/.test(before)) return undefined;
  const path = isUrl ? word.replace(/^\/{2,3}(?:[^/]{0,100}\/)?\.\//, "./").replace(/^\/\/(?=\/)/, "") : word;
  const drive = /(?:^|[\s("'])([A-Za-z]:)$/.exec(before)?.[1] ?? "";
  const name = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
  const extension = /\.([A-Za-z]\w{0,11})$/.exec(name)?.[1]?.toLowerCase();
  const isFile =
    isExact ||
    names.test(name) ||
    (extension !== undefined && extensions.has(extension) && !/^\d+$/.test(name.split(".").at(-2) ?? "x"));
  if (
    !isFile &&
    !(
      extension !== undefined &&
      /^(?:\.{0,2}\/|[a-z]+\/)/.test(path) &&
      !/^[\w.-]+\.(?:com|org|io|dev|net|example|internal|local)\//.test(path)
    )
  )
    return undefined;
  return `${/^[/\\]/.test(path) ? drive : ""}${path}`;
}

/** Files of tools and libraries: a frame in one of these is not the user's own. */
const foreign =
  /(?:^|[\\/])(?:node_modules|site-packages|dist-packages|libsanitizer|\.cargo|\.rustup|rustc|vendor|gems|jspm_packages|bower_components|\.m2|\.gradle|Pods|deps|elixir|erlang)[\\/]|^(?:node:|internal[\\/][\w\\/]+\.js|<|\(?native|\/usr\/(?:lib|local\/(?:lib|go|rustup))|\/rustc\/|\/opt\/(?:python|hostedtoolcache)|\/nix\/store|\/snap\/|\.\.\/(?:sysdeps|crypto|ssl|providers|nptl|malloc|csu|glib|gio)\/|\.\.\/\.\.\/\.\.\/\.\.\/src)|^(?:testing|panic|proc|asm_\w+)\.(?:go|s)$|\/lib\/python\d|\/lib\/ruby\/|go\/pkg\/mod\/|\/go\/src\/(?:runtime|testing)|^[/\\]?(?:library|src)\/(?:core|std|alloc|libstd)\//;

export function isForeign({ file }: CodePlace): boolean {
  return foreign.test(file);
}
