// Gives the tools of a list other names and descriptions.
export default function (context) {
  const { names, descriptions } = context.variables;
  const taken = new Set(context.response.tools.map((tool) => tool.name));
  for (const tool of context.response.tools) {
    const { name } = tool;
    if (Object.hasOwn(descriptions, name)) {
      tool.description = descriptions[name];
    }
    if (!Object.hasOwn(names, name)) {
      continue;
    }
    if (taken.has(names[name])) {
      throw new Error(`${name} cannot be called ${names[name]}: a tool has that name`);
    }
    taken.add(names[name]);
    tool.name = names[name];
  }
}
