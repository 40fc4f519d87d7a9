package app

import (
	"context"
	"path/filepath"

	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
)

// Audit is the audit log of a data directory.
type Audit struct {
	*audit.Log

	app *App
	cfg *config.Config
}

// NewAudit returns the audit log. Its key is that of the journal.
func (a *App) NewAudit(cfg *config.Config) *Audit {
	var shared deployment.State // an interface that is nil, if cfg.Shared is
	if cfg.Shared != nil {
		shared = cfg.Shared
	}
	return &Audit{app: a, cfg: cfg, Log: &audit.Log{
		Shared:   shared,
		Path:     filepath.Join(cfg.DataDir, "audit.jsonl"),
		HeadPath: filepath.Join(cfg.Journal.HeadsDir, digest.Hex(cfg.DataDir)[:12]+".audit"),
		Now:      a.Host.CurrentTime,
		Key:      func(ctx context.Context) ([]byte, error) { return a.journalKey(ctx, cfg) },
	}}
}

// journalKey returns the key of the journal. If it does not exist, it opens the store, which
// creates a key only if no other one belongs to it.
func (a *App) journalKey(ctx context.Context, cfg *config.Config) ([]byte, error) {
	if !isMissing(cfg.Journal.KeyFile) {
		key, _, err := keyfile.LoadOrCreate(cfg.Journal.KeyFile)
		return key, err
	}
	s := a.NewStore(cfg, nil)
	defer s.Close()
	o, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	return o.key, nil
}

// Record adds an entry, also if the context has ended. It logs errors, because the audited
// action is complete. A refused request creates no key, so it has no entry before the first run, login or token.
func (l *Audit) Record(ctx context.Context, e audit.Entry) {
	if e.Kind == audit.Refused && isMissing(l.cfg.Journal.KeyFile) {
		return
	}
	if err := l.Append(context.WithoutCancel(ctx), e); err != nil {
		l.app.Logger(l.cfg).ErrorContext(ctx, "cannot write the audit log", "kind", e.Kind, "subject", e.Subject, "error", err)
	}
}

// RecordCommand adds an entry about a command of the local user.
func (a *App) RecordCommand(ctx context.Context, cfg *config.Config, kind audit.Kind, subject, detail string) {
	user, _ := LocalUser(cfg) // the command has succeeded, so the user is known
	a.NewAudit(cfg).Record(ctx, audit.Entry{Kind: kind, User: user, Client: ClientName, Via: string(run.ViaTerminal), Subject: subject, Detail: detail})
}

// PutApproval stores the approval of a person at the terminal, and records it in the audit
// log.
func (a *App) PutApproval(ctx context.Context, cfg *config.Config, r approval.Record) error {
	store, err := OpenApprovals(cfg, a.Host.CurrentTime)
	if err != nil {
		return err
	}
	if _, err := store.Put(ctx, r); err != nil {
		return err
	}
	a.RecordCommand(ctx, cfg, audit.Approval, string(r.Kind)+" "+r.Subject, "hash "+r.Hash)
	return nil
}

// auditedRuns records the answers of persons at gates, and passes all commands on.
type auditedRuns struct {
	run.Observer

	audit *Audit
}

// Committed implements run.Observer.
func (o auditedRuns) Committed(ctx context.Context, c run.Committed) {
	if o.Observer != nil {
		o.Observer.Committed(ctx, c)
	}
	if !c.By.Via.Person() {
		return
	}
	for _, fact := range c.Facts {
		switch fact.Kind {
		case engine.EventGateAnswered, engine.EventGateApproved, engine.EventCheckpointAnswer, engine.EventBranchTaken:
			o.audit.Record(ctx, audit.Entry{
				Kind: audit.Approval, User: c.By.User, Client: c.By.Client, Via: string(c.By.Via),
				Subject: "run " + c.Record.ID + ", gate " + fact.Step, Detail: "answer " + fact.Option,
			})
		}
	}
}

// Seen implements run.Observer.
func (o auditedRuns) Seen(ctx context.Context, r run.Record) {
	if o.Observer != nil {
		o.Observer.Seen(ctx, r)
	}
}
