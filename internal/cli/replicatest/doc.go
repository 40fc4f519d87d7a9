// Package replicatest tests several processes of `guideway serve` on one PostgreSQL database
// behind a proxy that has no stickiness. It contains only tests.
//
// The test binary starts itself as the server. Each replica has its own home directory; by
// default the replicas share the file of the journal's key, as a mounted secret. The tests
// need GUIDEWAY_TEST_POSTGRES, the URL of a disposable server.
package replicatest
