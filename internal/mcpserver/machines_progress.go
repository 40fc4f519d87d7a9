package mcpserver

import (
	"context"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway/internal/machine"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// waitParam is how long a call waits for a run.
func waitParam() param {
	return param{name: "wait", kind: kindInteger, description: "Seconds to wait for it to rest, at most 50", example: 30}
}

// wait answers where a run stands as soon as it rests, or after as long as the call
// wants to wait. Meanwhile what happens is told as progress, where the client has
// asked for it.
func (m *machineTools) wait(ctx context.Context, req *mcp.CallToolRequest, c run.Caller, id string, in arguments) (*driver.Status, error) {
	patience := time.Duration(min(max(in.integer("wait"), 0), longestPatience)) * time.Second
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil || patience == 0 {
		return m.machines.Wait(ctx, c, id, patience)
	}
	// Whose run it is was not asked yet: who may not see it watches nothing.
	if _, err := m.machines.Wait(ctx, c, id, 0); err != nil {
		return nil, err
	}
	updates, cancel := m.machines.Watch(id)
	defer cancel()
	done := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		tellProgress(ctx, req, token, updates, done)
	}()
	s, err := m.machines.Wait(ctx, c, id, patience)
	close(done)
	<-told
	return s, err
}

// tellProgress hands on what happens in a run, until done and all that has happened
// before.
func tellProgress(ctx context.Context, req *mcp.CallToolRequest, token any, updates <-chan driver.Update, done <-chan struct{}) {
	n := 0.0
	tell := func(u driver.Update) {
		message := progressText(u)
		if message == "" {
			return
		}
		n++
		// The client may be gone; then the run goes on without it.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: message})
	}
	for {
		select {
		case u := <-updates:
			tell(u)
			continue
		case <-done:
		}
		for {
			select {
			case u := <-updates:
				tell(u)
				continue
			default:
			}
			return
		}
	}
}

// progressText tells an update in a few words; "" is nothing to tell.
func progressText(u driver.Update) string {
	const longest = 200
	if u.Event == nil {
		return ""
	}
	switch e := u.Event; e.Kind {
	case machine.KindStateEntered:
		return plainLine("state "+e.State, longest)
	case machine.KindModelIntent:
		return plainLine(fmt.Sprintf("%s asks %s", e.Agent, e.Model), longest)
	case machine.KindModelResult:
		if e.Fault != nil {
			return plainLine(e.Agent+" got no answer: "+e.Fault.Message, longest)
		}
		return plainLine(fmt.Sprintf("%s answered: %s", e.Agent, e.Response.Message.Content), longest)
	case machine.KindToolIntent:
		return plainLine(fmt.Sprintf("%s calls %s", e.Agent, e.Tool.Name), longest)
	case machine.KindInputRequested:
		return "waits for an input"
	case machine.KindPaused:
		return plainLine("paused: "+e.Pause.Message, longest)
	case machine.KindCompleted:
		return "completed"
	default:
		return ""
	}
}
