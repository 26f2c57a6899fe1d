"""A receiver of progress that keeps it."""


class Recorder:
    """Reports (stage, share) and details, in their order."""

    def __init__(self):
        self.reports, self.details = [], []

    def report(self, stage, share):
        self.reports.append((stage, share))

    def detail(self, text):
        self.details.append(text)

    @property
    def stages(self):
        """Names of the stages, each once, in their order."""
        return list(dict.fromkeys(name for name, _ in self.reports))
