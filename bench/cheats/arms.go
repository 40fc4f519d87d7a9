package cheats

import "fmt"

// arm is a setting in which an agent works.
type arm string

// The arms. ciArm verifies what the agent has delivered in checksArm.
const (
	noServer  arm = "no server"
	nextArm   arm = "workflow_next"
	claimsArm arm = "runs without checks"
	checksArm arm = "runs with checks"
	ciArm     arm = "ci verify"
)

// agentArms returns the arms in which agents work.
func agentArms() []arm { return []arm{noServer, nextArm, claimsArm, checksArm} }

// hasRuns reports whether the agent works in a run of Guideway.
func (a arm) hasRuns() bool { return a == claimsArm || a == checksArm }

// outcome is the end of an agent's work in an arm.
type outcome string

const (
	// accepted is work that is recorded as complete.
	accepted outcome = "accepted"
	// claimed is work that is recorded as complete, but as a claim where the workflow
	// requires evidence.
	claimed outcome = "claim"
	// refused is work that is not recorded as complete.
	refused outcome = "refused"
	// varies is the expectation of a race. It is never the outcome of an arm.
	varies outcome = "varies"
)

// expectation is the expected outcome of a cheat in each arm.
type expectation map[arm]outcome

// expect returns the expectation of a cheat that no arm before runs notices.
func expect(claims, checks, ci outcome) expectation {
	return expectation{noServer: accepted, nextArm: accepted, claimsArm: claims, checksArm: checks, ciArm: ci}
}

// cell is the result of one agent in one arm.
type cell struct {
	Arm     arm     `json:"arm"`
	Outcome outcome `json:"outcome"`
	// Done is the verdict of the judge: the work was done.
	Done bool `json:"done"`
	// Reason is the refusal, or the reason of the judge.
	Reason   string  `json:"reason,omitempty"`
	Expected outcome `json:"expected,omitempty"`
	// Unexpected describes how the cell differs from its expectation.
	Unexpected string `json:"unexpected,omitempty"`
}

// compare sets Unexpected. A cheat that did the work is an error of the scenario.
func (c *cell) compare(role role) {
	switch {
	case role == modeled:
	case role == cheating && c.Done:
		c.Unexpected = "the cheat did the work"
	case role == honest && !c.Done:
		c.Unexpected = "the honest twin did not do the work: " + c.Reason
	case c.Expected != varies && c.Outcome != c.Expected:
		c.Unexpected = fmt.Sprintf("%s, expected %s", c.Outcome, c.Expected)
	}
}

// role is the role of an agent in a scenario.
type role string

const (
	cheating role = "cheat"
	honest   role = "honest"
	// modeled is the role of a model: nothing is expected of it.
	modeled role = "model"
)
