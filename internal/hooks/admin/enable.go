package admin

import (
	"context"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/hooks/runner"
)

// EnableRequest is a request to make a graph active.
type EnableRequest struct {
	ID string
	// Pin is the hash that the person has reviewed. No other version is enabled.
	Pin string
	// Order replaces the graph's own order in the chain; nil keeps it.
	Order *int
	// Who is the person who approves.
	Who string
}

// Enable approves the reviewed version of a graph. It returns guideway.CodeConflict if the
// graph has changed since the review.
func (d *Service) Enable(ctx context.Context, r EnableRequest) error {
	e, err := d.opts.Catalog.Snapshot().Hook(r.ID)
	if err != nil {
		return err
	}
	candidate := Candidate(e)
	record, err := candidate.Approval(r.Who, r.Order)
	if err != nil {
		return err
	}
	if r.Pin == "" {
		return guideway.Errorf(guideway.CodeInvalid, "the request to enable the hook graph %s has no pin", r.ID).
			WithFix("review the hook graph, and send the pin of the reviewed version")
	}
	if r.Pin != record.Hash {
		return guideway.Errorf(guideway.CodeConflict, "the current version of the hook graph %s is not the one that you reviewed", r.ID).
			WithFix("review the current version, and enable it with its pin")
	}
	found, err := runner.Check(ctx, d.opts.Scripts, e.Linked)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return (&Verdict{Diagnostics: found}).firstError()
	}
	record.When = d.opts.Now().UTC().Truncate(time.Millisecond)
	err = d.opts.Approvals.Change(ctx, func(records approval.Records) (approval.Records, error) {
		records = slices.DeleteFunc(slices.Clone(records), func(old approval.Record) bool { return old.Key() == record.Key() })
		return append(records, record), nil
	})
	if err != nil {
		return err
	}
	d.notifyApproval()
	return nil
}

// Disable disables a graph, even a broken or missing one. It returns guideway.CodeNotFound
// for a graph that is not enabled.
func (d *Service) Disable(ctx context.Context, id string) error {
	records, err := d.opts.Approvals.List()
	if err != nil {
		return err
	}
	snapshot := d.opts.Catalog.Snapshot()
	isOf := func(r approval.Record) bool {
		return r.Kind == approval.KindHookGraph && r.Subject == id && isPresent(snapshot, r.Source)
	}
	if !slices.ContainsFunc(records, isOf) {
		return guideway.Errorf(guideway.CodeNotFound, "the hook graph %s is not enabled", id).WithFix("guideway hooks list --active")
	}
	err = d.opts.Approvals.Change(ctx, func(records approval.Records) (approval.Records, error) {
		return slices.DeleteFunc(slices.Clone(records), isOf), nil
	})
	if err != nil {
		return err
	}
	d.notifyApproval()
	return nil
}

// notifyApproval reports changed approvals.
func (d *Service) notifyApproval() {
	if d.opts.OnApproval != nil {
		d.opts.OnApproval()
	}
}
