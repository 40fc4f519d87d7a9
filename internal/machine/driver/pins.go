package driver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

const (
	// firstPutBack is the delay before a run that this process left is offered again, which
	// doubles up to lastPutBack. Other processes take the run then, too.
	firstPutBack = time.Second
	lastPutBack  = time.Minute
)

// listTools lists the tools that are available to a run; nil if its roles use none.
func (s *Service) listTools(ctx context.Context, p *machineengine.Program, scope RunScope) ([]machineengine.ToolInfo, error) {
	if s.o.Tools == nil || !p.WantsTools() {
		return nil, nil
	}
	tools, err := s.o.Tools.Tools(ctx, scope)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "list the tools for the run: %w", err).WithFix("guideway machine resume %s", scope.Run)
	}
	return tools, nil
}

// toolPin returns the name of a tool among the pins of a run.
func toolPin(name string) string { return "tool " + name }

// pinTools returns the pins of the tools that the roles of a machine may use.
func pinTools(p *machineengine.Program, tools []machineengine.ToolInfo) map[string]string {
	pins := map[string]string{}
	for _, t := range tools {
		if t.Hash == "" || !p.AllowsTool(t.Name) {
			continue
		}
		pins[toolPin(t.Name)] = t.Hash
		for id, hash := range t.Hooks {
			pins["hook graph "+id] = hash
		}
	}
	return pins
}

// pinnedTools returns the tools of a run, or nil if it waits for a sub-machine. If this
// process lacks a pinned tool or hook graph, the error is a refusal with RuleTools; lacking
// is then the run, or the run nested in it that waits for the tools. A tool that appeared
// after the start of the run is left out.
func (s *Service) pinnedTools(ctx context.Context, l *loaded) (tools []machineengine.ToolInfo, lacking *loaded, err error) {
	if p := l.state.Pending; p != nil && p.Kind == machineengine.KindSubIntent {
		child, _, err := s.loadRun(ctx, l.rec.User, p.Run, 0)
		if guideway.ErrorCode(err) == guideway.CodeNotFound || err == nil && child.state.Status.Ended() {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		_, lacking, err = s.pinnedTools(ctx, child)
		return nil, lacking, err
	}
	if !l.program.WantsTools() {
		return nil, nil, nil
	}
	if tools, err = s.listTools(ctx, l.program, l.runScope()); err != nil {
		return nil, nil, err
	}
	if why, err := s.permitReason(ctx, l); err != nil || why != "" {
		return tools, nil, err // the run pauses before it uses a tool
	}
	pins := l.state.Pins
	if list := compareTools(pins, pinTools(l.program, tools)); len(list) > 0 {
		id := l.rec.ID
		return nil, l, newRefusal(id, RuleTools, "the tools or hook graphs of the run are not as they were at its start: "+strings.Join(list, "; "),
			"restore them here, or start a server that has them, which continues the run; or let a person accept the present ones: guideway machine resume "+id+
				" --accept-tools; or end the run: guideway machine cancel "+id)
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t machineengine.ToolInfo) bool {
		return t.Hash != "" && pins[toolPin(t.Name)] == ""
	}), nil, nil
}

// compareTools returns the differences of the present tools and hook graphs from the pinned
// ones, without those that were added.
func compareTools(pinned, present map[string]string) (list []string) {
	const shown, most = 12, 5
	short := func(hash string) string { return hash[:min(shown, len(hash))] }
	names := slices.SortedFunc(maps.Keys(pinned), func(a, b string) int { return strings.Compare(b, a) }) // tools first
	missing := false
	for _, name := range names {
		switch now := present[name]; {
		case now == pinned[name], now == "" && missing && !strings.HasPrefix(name, toolPin("")):
			// The graph may apply to the missing tool only.
		case now == "":
			list, missing = append(list, fmt.Sprintf("the %s (%s) is missing", name, short(pinned[name]))), true
		default:
			list = append(list, fmt.Sprintf("the %s has changed from %s to %s", name, short(pinned[name]), short(now)))
		}
	}
	if len(list) > most {
		list = append(list[:most:most], fmt.Sprintf("and %d more", len(list)-most))
	}
	return list
}

// lacksTools reports whether an error is a refusal with RuleTools.
func lacksTools(err error) bool {
	r, ok := run.AsRefusal(err)
	return ok && r.Rule == RuleTools
}

// leftRun describes how this process left a run.
type leftRun struct {
	times int
	// noted is the reason that this process has recorded as the pause of the run.
	noted string
}

// maxLeft limits the runs that a process remembers to have left.
const maxLeft = 10_000

// putBack stores a job for a run that this process leaves to others. If the job comes back,
// the run, or the run nested in it that lacks its tools, is paused, so that people see the
// reason; a process that has the tools continues it nevertheless.
func (s *Service) putBack(ctx context.Context, id string, l *loaded, why error) error {
	s.mu.Lock()
	left := s.lacking[id]
	s.mu.Unlock()
	job := &run.Job{User: l.rec.User, Run: id, Delay: min(firstPutBack<<min(left.times, 10), lastPutBack)}
	text := why.Error()
	stored := false
	switch refusal, _ := run.AsRefusal(why); {
	case left.times == 0:
		s.o.Logger.WarnContext(ctx, "this process leaves a machine run to others", "run", l.rec.ID, "reason", text)
	case left.noted != text || !l.state.LacksTools():
		l.job = job
		err := l.addEvent(machineengine.Event{Kind: machineengine.KindPaused, Pause: &machineengine.Pause{Code: machineengine.PauseTools, Message: refusal.Message, Fix: refusal.Fix}})
		if err == nil {
			err = s.flushEvents(ctx, l, s.serverBy(l))
		}
		if err != nil && guideway.ErrorCode(err) != guideway.CodeConflict {
			return err
		}
		left.noted, stored = text, err == nil
	}
	left.times++
	s.mu.Lock()
	if len(s.lacking) >= maxLeft { // the others are logged and recorded once more
		clear(s.lacking)
	}
	s.lacking[id] = left
	s.mu.Unlock()
	if stored {
		return nil
	}
	return s.o.Store.Schedule(ctx, *job)
}

// AcceptTools pins the present tools and hook graphs for a run and the runs nested in it,
// in place of those at its start. Only a person may accept them. It does not drive the run.
func (s *Service) AcceptTools(ctx context.Context, c run.Caller, id string) (*Status, error) {
	if !c.Approves() {
		r := newRefusal(id, RulePerson, "only a person may accept changed tools for a run",
			"ask the person to accept them in the dashboard, on the page of the run, or at a terminal: guideway machine resume "+id+" --accept-tools")
		r.Next = nil // no call of an agent continues the run
		return nil, r
	}
	child := ""
	_, err := s.changeRun(ctx, c, id, func(l *loaded) error {
		if l.state.Status.Ended() {
			return newRefusal(id, RuleEnded, fmt.Sprintf("the run is %s and uses no more tools", l.state.Status), "start a new run")
		}
		tools, err := s.listTools(ctx, l.program, l.runScope())
		if err != nil {
			return err
		}
		if p := l.state.Pending; p != nil && p.Kind == machineengine.KindSubIntent {
			child = p.Run
		}
		return l.addEvent(machineengine.Event{Kind: machineengine.KindToolsAccepted, Pins: pinTools(l.program, tools)})
	})
	if err != nil {
		return nil, err
	}
	if child != "" {
		if _, err := s.AcceptTools(ctx, c, child); err != nil && guideway.ErrorCode(err) != guideway.CodeRefused && guideway.ErrorCode(err) != guideway.CodeNotFound {
			return nil, err
		}
	}
	return s.Status(ctx, c, id)
}
