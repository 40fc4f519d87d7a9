package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// waitParam returns the parameter for the time that a call waits for a run.
func waitParam() param {
	return param{name: "wait", kind: kindInteger, description: "Seconds to wait for the run to pause or end, at most 50", example: 30}
}

// waitForRun returns the status of a run when it pauses or ends, or when the time has
// elapsed. Until then it sends progress if the client asked for it.
func (m *machineTools) waitForRun(ctx context.Context, c call, id string) (*driver.Status, error) {
	patience := time.Duration(min(max(c.intArg("wait"), 0), maxWaitSeconds)) * time.Second
	if progressOf(ctx, c.req) == nil || patience == 0 {
		return m.machines.Wait(ctx, c.caller, id, patience)
	}
	// Wait checks that the run belongs to the caller.
	if _, err := m.machines.Wait(ctx, c.caller, id, 0); err != nil {
		return nil, err
	}
	updates, cancel := m.machines.Watch(id)
	defer cancel()
	done := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() { sendProgress(ctx, c.req, updates, done) })
	s, err := m.machines.Wait(ctx, c.caller, id, patience)
	close(done)
	sending.Wait()
	return s, err
}

// sendProgress sends the updates of a run. After done is closed it sends the remaining ones
// and returns.
func sendProgress(ctx context.Context, req *mcp.CallToolRequest, updates <-chan driver.Update, done <-chan struct{}) {
	send := progressOf(ctx, req)
	tell := func(u driver.Update) {
		if message := progressText(u); message != "" {
			send(message)
		}
	}
	for {
		select {
		case u := <-updates:
			tell(u)
		case <-done:
			for len(updates) > 0 {
				tell(<-updates)
			}
			return
		}
	}
}

// progressOf returns a function that sends progress messages to the client, or nil if the
// client did not ask for them. The function must not be called concurrently.
func progressOf(ctx context.Context, req *mcp.CallToolRequest) func(message string) {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return nil
	}
	n := 0.0
	return func(message string) {
		n++
		// The client may have disconnected; the command continues or is cancelled with its call.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: message})
	}
}

// progressText returns an update in a few words, "" if there is nothing to report.
func progressText(u driver.Update) string {
	const longest = 200
	if u.Event == nil {
		return ""
	}
	switch e := u.Event; e.Kind {
	case machineengine.KindStateEntered:
		return plainLine("state "+e.State, longest)
	case machineengine.KindModelIntent:
		return plainLine(fmt.Sprintf("%s asks %s", e.Agent, e.Model), longest)
	case machineengine.KindModelResult:
		if e.Error != nil {
			return plainLine(e.Agent+" received no answer: "+e.Error.Message, longest)
		}
		return plainLine(fmt.Sprintf("%s answered: %s", e.Agent, e.Response.Message.Content), longest)
	case machineengine.KindToolIntent:
		return plainLine(fmt.Sprintf("%s calls %s", e.Agent, e.Tool.Name), longest)
	case machineengine.KindInputRequested:
		return "waits for input"
	case machineengine.KindPaused:
		return plainLine("paused: "+e.Pause.Message, longest)
	case machineengine.KindCompleted:
		return "completed"
	default:
		return ""
	}
}
