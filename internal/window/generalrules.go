package window

import "strings"

// The rules here know no names, but how names are made: a word for the state that a
// thing is in, before or behind it ("pendingTasks", "changesMade"), and a word for the
// kind of work before a word for what is written of it ("designNotes"). They come where
// no rule of a name applies, and what they know least of they call important at most.

// pairs joins each of the first words with each of the second ones.
func pairs(firsts, seconds string) string {
	var out []string
	for one := range strings.SplitSeq(firsts, "|") {
		for two := range strings.SplitSeq(seconds, "|") {
			out = append(out, one+" "+two)
		}
	}
	return strings.Join(out, "|")
}

// taskRules are what the task is, in the words of whoever set it. They come before the
// rules of what was written, since a task's description is the task.
func taskRules() []keyRule {
	return []keyRule{
		{
			whole, pairs("task|ticket|issue|bug|story|feature|problem|change|user|original|initial", "description|report|request|text|statement|title"),
			Critical, "what the task is",
		},
		{whole, pairs("task|ticket|story|feature", "summary"), Critical, "what the task is"},
		{
			last, pairs("user|users|customer|client|stakeholder|owner", "answer|answers|reply|replies|choice|choices|need|needs|wish|wishes|expectation|expectations|story|stories|order|orders"),
			Critical, "what somebody who may ask for it has said",
		},
		{whole, "problem|request|task|ticket|complexity|severity|priority|deadline|audience|budget", Critical, "what the task is, and how large"},
	}
}

// generalRules are for names that no other rule knows.
func generalRules() []keyRule {
	return []keyRule{
		{
			within, "decision|decisions|requirement|requirements|constraint|constraints|guardrail|guardrails|criterion|criteria|deadline|due date|from user",
			Critical, "what was asked for or decided",
		},
		{
			first, "desired|wanted|expected|required|intended|requested|mandatory|must|must not|do not|never|forbidden|prohibited|disallowed|" +
				"rejected|decided|definition of|what to|done when",
			Critical, "what is wanted, or must not be",
		},
		{first, "target|acceptance|non negotiable|non negotiables|signed off|settled on|opted for|agreed on", Critical, "what is wanted, or was agreed"},
		{last, "settled on|opted for|signed off by|approved by|non negotiables|boundary|boundaries", Critical, "what is wanted, or was agreed"},
		{whole, "brief|assignment|the ask", Critical, "what the task is"},
		{last, "epoch ms|epoch|unix time|clock|percent done|progress pct|scroll offset|cursor position|queue depth|tick count", Ephemeral, "a matter of one moment"},
		{first, "outstanding|still to|to do|next up|flaky", Important, "what is left to do"},
		{
			last, "concern|concerns|caveat|caveats|regression|regressions|suspect|suspects|culprit|handoff|handover|outline|breakdown|sketch|draft|pros and cons",
			Important, "what was worked out, or is left to do",
		},
		{last, "wish|wishes|expectation|expectations|guarantee|guarantees|limit|limits|deadline|outcome wanted", Critical, "what is wanted, or must not be"},
		{last, pairs("elapsed|progress|eta|remaining|time|wait|waited|took|duration|uptime", "ms|millis|seconds|secs|minutes|percent|percentage|left"), Ephemeral, "a matter of one moment"},
		{last, pairs("cache|lock|last", "key|hit|hits|ping|poll|beat|tick"), Ephemeral, "a matter of one moment"},
		{
			last, pairs("benchmark|experiment|measurement|profiling|evaluation|check|scan|audit|survey|interview|load|smoke|regression|integration|unit",
				"result|results|outcome|outcomes|report|reports|findings"),
			Important, "what was found out",
		},
		{
			last, pairs("design|implementation|investigation|research|review|analysis|architecture|migration|meeting|handover|progress|planning|work|status",
				"note|notes|memo|memos|log|update|updates"),
			Important, "what was worked out",
		},
		{
			last, pairs("issue|ticket|request|mr|pr|build|pipeline|release|deployment|incident", "url|link|key|number|ref|tag"),
			Important, "where something is that was made",
		},
		{
			first, "failed|failing|broken|suspected|likely|possible|pending|remaining|unresolved|unfinished|incomplete|discovered|identified|" +
				"tried|attempted|applied|created|changed|modified|updated|added|removed|deleted|touched|fixed|done|finished|verified|" +
				"tested|measured|observed|suggested|recommended|planned|estimated|new|open|known|key|main|lessons|incident",
			Important, "what was found or made, or is left to do",
		},
		{
			last, "made|applied|done|so far|tested|tried|found|changed|fixed|taken|ruled out|left|remaining|used|chosen|" +
				"observation|observations|measurement|measurements|outcome|outcomes|takeaways|learnings|proposal|proposals|" +
				"suggestion|suggestions|bottleneck|bottlenecks|impact|impacts|consequence|consequences|side effect|side effects|" +
				"edge case|edge cases|corner cases|failure mode|failure modes|blast radius|follow up|follow ups|action items|" +
				"unknowns|uncertainties|confidence|estimate|estimates|reason|reasons|hunch|theory|threads|change list|graph",
			Important, "what was found or made, or is left to do",
		},
	}
}
