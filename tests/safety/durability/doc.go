// Package durability kills real zkgo processes under load and checks that nothing
// they have acknowledged is lost: writes, sessions, ephemerals and the order of
// zxids.
//
// CRASH_RUNS sets the number of kills per log store.
package durability
