// The source of compiled.js; see TestSourceMap.
interface Context {
  request: { method: string; params?: { name: string } };
}

type Names = Record<string, number>;

const seen: Names = {};

function nameOf(context: Context): string {
  // Types are gone in the compiled file, so the lines differ.
  const unused: undefined | number = undefined;
  return context.request.params!.name;
}

export default async function (context: Context): Promise<Names> {
  seen[nameOf(context)] = 1;
  return seen;
}
