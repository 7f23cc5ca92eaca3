// Package helm installs, upgrades, rolls back and uninstalls a chart with hooks
// and a custom resource definition, with each helm that LEVELWIRE_HELM names.
// It has only tests.
package helm
