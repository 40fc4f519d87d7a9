// Each function is called with the run as `this`: common_data is what is kept,
// workflow_contexts has the conversations, last_response is what the agent answered.
export default {
  ask() {
    const { question, words } = this.common_data;
    this.workflow_contexts.get("draft").addMessage({ role: "user", content: `Explain in at most ${words} words: ${question}` });
  },

  keep() {
    const { content } = this.last_response.choices[0].message;
    this.common_data.answer = content;
    this.workflow_contexts.get("draft").addMessage({ role: "assistant", content });
  },

  judge() {
    const verdict = JSON.parse(this.last_response.choices[0].message.tool_calls[0].function.arguments);
    this.common_data.clear = verdict.clear;
    if (!verdict.clear) {
      this.workflow_contexts.get("draft").addMessage({ role: "user", content: `This is not clear yet: ${verdict.unclear}` });
    }
  },

  isClear() {
    return this.common_data.clear ? "accept" : "write";
  },

  isAccepted() {
    if (this.common_data.verdict === "yes") return "stop";
    this.workflow_contexts.get("draft").addMessage({ role: "user", content: "Not good enough. Explain it another way." });
    return "write";
  },
};
