// Package recipe holds the steps that several recipes share: repeating what a lost
// connection interrupted, waiting for watches, and making parents.
//
// May import: of this module only client and recipes.
package recipe
