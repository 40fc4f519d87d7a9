// Package session stores session documents: the free-form JSON in which an agent records
// its progress, for a person to view and for the agent to read back. A document belongs to
// a user, a project and a workflow.
//
// Updates are merged into a document, and a few names and values that dashboards read are
// normalized. Unusual content is recorded in a log and not refused. An update is refused
// only if it exceeds a limit or has an invalid path.
//
// Everything except the Service is pure: no clock, no I/O.
package session
