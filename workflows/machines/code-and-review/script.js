// The coder and the reviewer share one conversation: what one says, the other hears.

export default {
  giveTask() {
    this.workflow_contexts.get("review").addMessage({ role: "user", content: this.common_data.task });
  },

  keepCode() {
    const text = this.last_response.choices[0].message.content;
    this.common_data.code = text;
    this.workflow_contexts.get("review").addMessage({ role: "assistant", content: text });
  },

  keepVerdict() {
    const call = this.last_response.choices[0].message.tool_calls[0];
    const verdict = JSON.parse(call.function.arguments);
    const data = this.common_data;
    data.rounds += 1;
    data.accepted = verdict.accepted === true;
    data.findings = Array.isArray(verdict.findings) ? verdict.findings : [];
    if (!data.accepted) {
      const list = data.findings.map((finding, i) => `${i + 1}. ${finding}`).join("\n");
      this.workflow_contexts.get("review").addMessage({ role: "user", content: "Findings:\n" + (list || "none named; look at the task again") });
    }
    this.close(data.accepted ? "accepted" : "not accepted");
  },

  acceptOrMend() {
    const { accepted, rounds, max_rounds: most } = this.common_data;
    if (accepted || rounds > most) return "stop";
    return "mend";
  },

  giveUp() {
    this.close(`stopped: ${this.error.message}`);
    return "stop";
  },

  close(verdict) {
    const { code = "", rounds, findings = [] } = this.common_data;
    this.common_data.result = { verdict, rounds, findings, code };
  },
};
