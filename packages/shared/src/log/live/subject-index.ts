type Node<Value> = {
  readonly tokens: Map<string, Node<Value>>;
  /** Filters with `*` here. */
  any: Node<Value> | undefined;
  /** Filters that end here. */
  readonly here: Set<Value>;
  /** Filters that end here with `>`. */
  readonly rest: Set<Value>;
};

/**
 * Values by NATS filter subjects (`*`: one token, `>`: one or more). Finding those of a subject costs as much as there
 * are, and the depth of the subject; it does not depend on how many others there are.
 */
export class SubjectIndex<Value> {
  readonly #root: Node<Value> = newNode();

  add(filter: string, value: Value): void {
    let node = this.#root;
    for (const token of filter.split(".")) {
      if (token === ">") {
        node.rest.add(value);
        return;
      }
      node = token === "*" ? anyOf(node) : childOf(node, token);
    }
    node.here.add(value);
  }

  delete(filter: string, value: Value): void {
    remove(this.#root, filter.split("."), 0, value);
  }

  /** Calls `visit` for each value with a filter that the subject matches: once for each such filter. */
  visit(tokens: readonly string[], visit: (value: Value) => void): void {
    walk(this.#root, tokens, 0, visit);
  }

  get isEmpty(): boolean {
    return isUnused(this.#root);
  }
}

function newNode<Value>(): Node<Value> {
  return { tokens: new Map(), any: undefined, here: new Set(), rest: new Set() };
}

function anyOf<Value>(node: Node<Value>): Node<Value> {
  node.any ??= newNode();
  return node.any;
}

function childOf<Value>(node: Node<Value>, token: string): Node<Value> {
  let child = node.tokens.get(token);
  if (child === undefined) {
    child = newNode();
    node.tokens.set(token, child);
  }
  return child;
}

function walk<Value>(node: Node<Value>, tokens: readonly string[], depth: number, visit: (value: Value) => void): void {
  const token = tokens[depth];
  if (token === undefined) {
    for (const value of node.here) visit(value);
    return;
  }
  for (const value of node.rest) visit(value);
  const child = node.tokens.get(token);
  if (child !== undefined) walk(child, tokens, depth + 1, visit);
  if (node.any !== undefined) walk(node.any, tokens, depth + 1, visit);
}

/** Also removes what leads nowhere then: filters come and go for as long as the process lives. */
function remove<Value>(node: Node<Value>, tokens: readonly string[], depth: number, value: Value): void {
  const token = tokens[depth];
  if (token === undefined) node.here.delete(value);
  else if (token === ">") node.rest.delete(value);
  else {
    const child = token === "*" ? node.any : node.tokens.get(token);
    if (child === undefined) return;
    remove(child, tokens, depth + 1, value);
    if (!isUnused(child)) return;
    if (token === "*") node.any = undefined;
    else node.tokens.delete(token);
  }
}

function isUnused<Value>({ tokens, any, here, rest }: Node<Value>): boolean {
  return tokens.size === 0 && any === undefined && here.size === 0 && rest.size === 0;
}
