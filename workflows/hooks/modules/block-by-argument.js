// Refuses a call where an argument has a text or a member name that matches a pattern.
export default function (context) {
  const { argument, pattern, message } = context.variables;
  const args = context.request.params?.arguments ?? {};
  const looked = argument === "" ? args : argument.split(".").reduce((value, key) => value?.[key], args);

  const forbidden = new RegExp(pattern, "i");
  // An address can write each character by its code.
  const decode = (text) => text.replace(/%([0-7][0-9a-f])/gi, (_, code) => String.fromCharCode(parseInt(code, 16)));
  const find = (value) => {
    if (typeof value === "string") {
      return forbidden.test(value) || forbidden.test(decode(value)) ? value : undefined;
    }
    if (value === null || typeof value !== "object") {
      return undefined;
    }
    const texts = Array.isArray(value) ? value : Object.entries(value).flat();
    for (const each of texts) {
      const found = find(each);
      if (found !== undefined) {
        return found;
      }
    }
    return undefined;
  };
  const found = find(looked ?? null);
  if (found !== undefined) {
    console.warn(`blocked ${context.request.params.name}: ${found}`);
    return { continue: false, error: { code: "BLOCKED", message } };
  }
}
