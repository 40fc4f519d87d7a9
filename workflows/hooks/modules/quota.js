// Refuses calls after a number of them in a day or a month.
export default function (context) {
  const { limit, period, per } = context.variables;
  const digits = { day: 10, month: 7 }; // of 2026-11-23
  if (!Object.hasOwn(digits, period)) {
    throw new Error(`the variable period is ${period}; it can be day or month`);
  }
  if (!Object.hasOwn(state, per)) {
    throw new Error(`the variable per is ${per}; it can be client, upstream or global`);
  }
  const now = new Date().toISOString().slice(0, digits[period]);
  if (state[per].incr(now, 1, { ttl: 32 * 24 * 3600 * 1000 }) > limit) {
    state[per].incr(now, -1); // a refused call does not count
    const message = `the quota of ${limit} calls for the ${period} ${now} (UTC) is used up`;
    return { continue: false, error: { code: "QUOTA", message } };
  }
}
