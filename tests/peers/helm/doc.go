// Package helm installs, upgrades, rolls back and uninstalls a chart with hooks
// and a custom resource definition, with each helm that LEVELWIRE_HELM names.
// With -through-relay, helm finds the API at a relay in front of the server.
// It has only tests.
package helm
