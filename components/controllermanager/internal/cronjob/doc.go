// Package cronjob creates Jobs at the times of their CronJobs' schedules, one
// per time and named after it, so that a time is served at most once, however
// often the controller is restarted.
package cronjob
