// Package session stores session documents: the free-form JSON in which an agent records
// its progress, for a person to view and for the agent to read back. A document belongs to
// a user, a project and a workflow.
//
// The content is stored as written. Updates are merged into it, a few names and values of
// the dashboard are normalized, and unusual content is recorded in a log. No content is
// refused, within the limits of size.
//
// Everything except the Service is pure: no clock, no I/O.
package session
