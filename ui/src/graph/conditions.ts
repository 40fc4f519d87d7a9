import { isObject, text } from "./json";

const words: Record<string, string> = {
  equals: "is", not_equals: "is not", "==": "is", "===": "is", "!=": "is not", "!==": "is not",
  gt: ">", gte: "≥", lt: "<", lte: "≤", ">=": "≥", "<=": "≤",
};

/** A condition of either dialect in words; undefined where there is none. */
export function conditionWords(condition: unknown): string | undefined {
  if (!isObject(condition)) return undefined;
  for (const word of ["and", "or"] as const) {
    const members = condition["type"] === word ? condition["conditions"] : condition[word];
    if (Array.isArray(members)) return members.map((m) => grouped(m)).join(` ${word} `);
  }
  const not = condition["type"] === "not" ? (condition["condition"] ?? condition["conditions"]) : condition["not"];
  if (not !== undefined) return `not ${grouped(Array.isArray(not) ? not[0] : not)}`;
  const variable = text(condition["variable"]) || text(condition["var"]);
  if (condition["operator"] !== undefined) return compared(variable, text(condition["operator"]), condition["value"]);
  const [operator, value] = Object.entries(condition).find(([k]) => k !== "var" && k !== "type") ?? [];
  return operator === undefined ? `${variable} is set` : compared(variable, operator, value);
}

function compared(variable: string, operator: string, value: unknown): string {
  if (operator === "exists") return `${variable} exists`;
  if (operator === "notExists") return `${variable} does not exist`;
  const said = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return `${variable} ${words[operator] ?? operator.replaceAll("_", " ")} ${said}`;
}

/** A member in brackets where it joins others itself. */
function grouped(member: unknown): string {
  const said = conditionWords(member) ?? "?";
  return / (and|or) /.test(said) ? `(${said})` : said;
}

/** How far a loop goes, in words. */
export function loopWords(loop: unknown): string {
  if (!isObject(loop)) return "";
  const type = text(loop["type"]);
  const over = text(loop["items"]) || text(loop["over"]);
  if (type === "forEach") return over === "" ? "for each" : `for each of ${over}`;
  if (type === "for") return `${String(loop["count"])} times`;
  return `${type} ${conditionWords(loop["condition"]) ?? ""}`.trim();
}
