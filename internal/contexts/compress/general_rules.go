package compress

import "strings"

// The rules in this file match parts of names: a word for a state before or after the noun
// ("pendingTasks", "changesMade"), or a word for the kind of work before a word for a text
// ("designNotes"). The generalRules apply if no rule for a specific name matches; the
// vaguest of them assign at most the layer important.

// joinPairs joins each of the first words with each of the second words.
func joinPairs(firsts, seconds string) string {
	var out []string
	for one := range strings.SplitSeq(firsts, "|") {
		for two := range strings.SplitSeq(seconds, "|") {
			out = append(out, one+" "+two)
		}
	}
	return strings.Join(out, "|")
}

// taskRules match names that describe the task or contain the words of a stakeholder. They
// come before the rules for written texts, because "taskDescription" is the task.
func taskRules() []keyRule {
	return []keyRule{
		{
			wholeKey, joinPairs("task|ticket|issue|bug|story|feature|problem|change|user|original|initial", "description|report|request|text|statement|title"),
			Critical, "the task",
		},
		{wholeKey, joinPairs("task|ticket|story|feature", "summary"), Critical, "the task"},
		{
			keyEnd, joinPairs("user|users|customer|client|stakeholder|owner", "answer|answers|reply|replies|choice|choices|need|needs|wish|wishes|expectation|expectations|story|stories|order|orders"),
			Critical, "the words of a stakeholder",
		},
		{wholeKey, "problem|request|task|ticket|complexity|severity|priority|deadline|audience|budget", Critical, "the task or its size"},
	}
}

// generalRules are for names that no specific rule matches.
func generalRules() []keyRule {
	return []keyRule{
		{
			anyWords, "decision|decisions|requirement|requirements|constraint|constraints|guardrail|guardrails|criterion|criteria|deadline|due date|from user",
			Critical, "a requirement or a decision",
		},
		{
			keyStart, "desired|wanted|expected|required|intended|requested|mandatory|must|must not|do not|never|forbidden|prohibited|disallowed|" +
				"rejected|decided|definition of|what to|done when",
			Critical, "a requirement",
		},
		{keyStart, "target|acceptance|non negotiable|non negotiables|signed off|settled on|opted for|agreed on", Critical, "a requirement or an agreement"},
		{keyEnd, "settled on|opted for|signed off by|approved by|non negotiables|boundary|boundaries", Critical, "a requirement or an agreement"},
		{wholeKey, "brief|assignment|the ask", Critical, "the task"},
		{keyEnd, "epoch ms|epoch|unix time|clock|percent done|progress pct|scroll offset|cursor position|queue depth|tick count", Ephemeral, "valid only at one moment"},
		{keyStart, "outstanding|still to|to do|next up|flaky", Important, "open work"},
		{
			keyEnd, "concern|concerns|caveat|caveats|regression|regressions|suspect|suspects|culprit|handoff|handover|outline|breakdown|sketch|draft|pros and cons",
			Important, "a result or open work",
		},
		{keyEnd, "wish|wishes|expectation|expectations|guarantee|guarantees|limit|limits|deadline|outcome wanted", Critical, "a requirement"},
		{keyEnd, joinPairs("elapsed|progress|eta|remaining|time|wait|waited|took|duration|uptime", "ms|millis|seconds|secs|minutes|percent|percentage|left"), Ephemeral, "valid only at one moment"},
		{keyEnd, joinPairs("cache|lock|last", "key|hit|hits|ping|poll|beat|tick"), Ephemeral, "valid only at one moment"},
		{
			keyEnd, joinPairs("benchmark|experiment|measurement|profiling|evaluation|check|scan|audit|survey|interview|load|smoke|regression|integration|unit",
				"result|results|outcome|outcomes|report|reports|findings"),
			Important, "a finding",
		},
		{
			keyEnd, joinPairs("design|implementation|investigation|research|review|analysis|architecture|migration|meeting|handover|progress|planning|work|status",
				"note|notes|memo|memos|log|update|updates"),
			Important, "a result of the work",
		},
		{
			keyEnd, joinPairs("issue|ticket|request|mr|pr|build|pipeline|release|deployment|incident", "url|link|key|number|ref|tag"),
			Important, "the location of an artifact",
		},
		{
			keyStart, "failed|failing|broken|suspected|likely|possible|pending|remaining|unresolved|unfinished|incomplete|discovered|identified|" +
				"tried|attempted|applied|created|changed|modified|updated|added|removed|deleted|touched|fixed|done|finished|verified|" +
				"tested|measured|observed|suggested|recommended|planned|estimated|new|open|known|key|main|lessons|incident",
			Important, "a result or open work",
		},
		{
			keyEnd, "made|applied|done|so far|tested|tried|found|changed|fixed|taken|ruled out|left|remaining|used|chosen|" +
				"observation|observations|measurement|measurements|outcome|outcomes|takeaways|learnings|proposal|proposals|" +
				"suggestion|suggestions|bottleneck|bottlenecks|impact|impacts|consequence|consequences|side effect|side effects|" +
				"edge case|edge cases|corner cases|failure mode|failure modes|blast radius|follow up|follow ups|action items|" +
				"unknowns|uncertainties|confidence|estimate|estimates|reason|reasons|hunch|theory|threads|change list|graph",
			Important, "a result or open work",
		},
	}
}
