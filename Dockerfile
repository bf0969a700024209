FROM python:3.13-slim

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

WORKDIR /opt/omega

# The pins are the whole list, so nothing is resolved. They change less often than the code: a layer of
# their own.
COPY requirements.txt ./
RUN pip install --no-deps -r requirements.txt

COPY pyproject.toml README.md ./
COPY omega ./omega
COPY schedulers ./schedulers
COPY migrations ./migrations
RUN pip install --no-deps .

RUN useradd --system --uid 10001 --create-home --home-dir /home/omega omega
USER omega
WORKDIR /home/omega

CMD ["omega", "--help"]
