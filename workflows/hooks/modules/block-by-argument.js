// Refuses a call where an argument has a text that matches a pattern.
export default function (context) {
  const { argument, pattern, message } = context.variables;
  const args = context.request.params?.arguments ?? {};
  const looked = argument === "" ? args : argument.split(".").reduce((value, key) => value?.[key], args);

  const forbidden = new RegExp(pattern, "i");
  let found;
  const look = (text) => {
    if (found === undefined && forbidden.test(text)) {
      found = text;
    }
    return text;
  };
  mapStrings(looked ?? null, look);
  if (found !== undefined) {
    console.warn(`blocked ${context.request.params.name}: ${found}`);
    return { continue: false, error: { code: "BLOCKED", message } };
  }
}
