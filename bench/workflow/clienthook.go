package workflow

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// measureHooks measures a client's hook, from just before its process is created to its end:
// in a session with a run at step 10, in one with a long run, and in one without a run, next
// to a process of the program that does nothing. A server has the store open, as in a client.
func (p plan) measureHooks(ctx context.Context, t *target, long *durableWalk, rec record) error {
	s, err := t.startServer(ctx, legacy)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.initializeSession(ctx); err != nil {
		return err
	}
	short := &durableWalk{}
	if err := short.startRun(ctx, s); err != nil {
		return err
	}
	if err := short.continueUntil(ctx, s, 10); err != nil {
		return err
	}
	for session, handle := range map[string]string{"short": short.handle, "long": long.handle} {
		bind := fmt.Sprintf(`{"session_id":%q,"tool_name":"mcp__guideway__workflow_continue","tool_input":{"handle":%q}}`, session, handle)
		if _, _, err := runProcess(ctx, t, bind, "client-hook", "claude-code", "PostToolUse"); err != nil {
			return err
		}
	}
	for to, session := range map[row]string{rowHook: "short", rowHookLong: "long", rowHookFree: "free", rowVersion: ""} {
		args, in := []string{"version"}, ""
		if session != "" {
			args = []string{"client-hook", "claude-code", "PreToolUse"}
			in = fmt.Sprintf(`{"session_id":%q,"tool_name":"Edit","tool_input":{"file_path":"a.go"}}`, session)
		}
		var walls, cpus []time.Duration
		for range p.starts {
			wall, cpu, err := runProcess(ctx, t, in, args...)
			if err != nil {
				return err
			}
			walls, cpus = append(walls, wall), append(cpus, cpu)
		}
		f := latencyFigure(walls)
		f.CPU = new(latencyFigure(cpus).Value)
		rec(to, f)
	}
	return nil
}

// runProcess runs the program until it ends. Output on standard error is an error, because
// a hook reports an event that it could not check.
func runProcess(ctx context.Context, t *target, in string, args ...string) (wall, cpu time.Duration, err error) {
	var reports strings.Builder
	cmd := exec.CommandContext(ctx, t.command[0], args...) //nolint:gosec // the program to measure
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stderr = t.env, t.dir, strings.NewReader(in), &reports
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("run %v: %w: %s", args, err, reports.String())
	}
	wall = time.Since(began)
	if reports.Len() > 0 {
		return 0, 0, fmt.Errorf("run %v: %s", args, reports.String())
	}
	return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
