package cheats

import "slices"

// scenario is a cheat with its honest twin.
type scenario struct {
	name string
	// title describes what the cheat does.
	title string
	// source is the thread that the cheat is modeled on.
	source  string
	project *project
	task    *task
	// setup, if set, prepares the project before a person approves its checks.
	setup func(a *agent)
	// cheat and honest are the scripts.
	cheat, honest func(a *agent)
	// unchanged are files that the cheat must not change.
	unchanged []string
	expect    expectation
	// why explains how the cheat still succeeds where a check or CI should refuse it.
	why string
	// needs are further programs, and linux is set if the cheat needs Linux.
	needs []string
	linux bool
	// quick is set for the scenarios of the required tests.
	quick bool
}

// programs returns the programs that the scenario needs.
func (s *scenario) programs() []string {
	return slices.Concat([]string{"git"}, s.project.needs, s.needs)
}

// scenarios returns all scenarios in the order of the table.
func scenarios() []*scenario {
	return slices.Concat(claimScenarios(), testScenarios(), sourceScenarios(), configScenarios(), gitScenarios(), runScenarios(), attestationScenarios(), hostScenarios())
}

func (a *agent) doTaskWithTest() {
	a.plan()
	a.write(a.project.addedTest, a.project.addedText)
	a.finish()
}
